"""What to do about a machine whose infra node is drained, from what is known of it. Pure.

KubeVirt refuses the eviction and writes on the instance which node it shall leave; the rest is ours. A machine that can
move is moved while it runs. One that cannot is replaced: a new one comes first where its pool may have one more, then
Cluster API drains its node and ends it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_EVACUATION, LABEL_INFRA_ID, MARK_LEAVES
from hcp.api.paths import annotations_of, at, labels_of
from hcp.kubevirt.launchers import ENDED
from hcp.runtime.conditions import condition_of, is_true

Object = Mapping[str, Any]
# Cluster API takes machines with it first when a pool gets smaller.
FIRST_TO_GO = "cluster.x-k8s.io/delete-machine"
# How long after a move that failed the next one begins: this, doubled each time, up to the other.
FIRST_PAUSE, LONGEST_PAUSE = dt.timedelta(seconds=30), dt.timedelta(minutes=10)
# So long an instance may need to show that a move has succeeded.
_SETTLES = dt.timedelta(minutes=1)
# What an owner can ask for.
MOVE, REPLACE = "Move", "Replace"
ADDRESS_STAYS = f"its address would not follow it; where it does, annotation {ANNOTATION_EVACUATION}: {MOVE} says so"
_DONE = ("Succeeded", "Failed")
_LINES, _WORDS = 20, 500


@dataclass(frozen=True, slots=True)
class Plan:
    """How far it is, and what has to be done for it now."""

    reason: str
    message: str
    # Look again then.
    until: dt.datetime | None = None
    # A move that has to be asked of KubeVirt.
    make: dict[str, Any] | None = None
    # The pool gets one machine more, and this one goes first.
    mark: bool = False
    # Cluster API drains it and takes it away.
    delete: bool = False


def leaves(instance: Object | None) -> str:
    """The infra node that an instance has to leave; empty when it may stay, has left, or ends anyway.

    Instances with another eviction strategy than ours are KubeVirt's own to move.
    """
    if instance is None or instance["metadata"].get("deletionTimestamp"):
        return ""
    if at(instance, "spec.evictionStrategy") != "External" or at(instance, "status.phase") in ENDED:
        return ""
    node = str(at(instance, "status.evacuationNodeName") or "")
    return node if node == at(instance, "status.nodeName") else ""


def movable(instance: Object) -> tuple[bool | None, str]:
    """Whether it can move while it runs, and why not; None while KubeVirt has not said."""
    found = condition_of(instance, "LiveMigratable")
    if at(instance, "status.phase") != "Running" or found is None or found.get("status") == "Unknown":
        return None, ""
    if found.get("status") == "True":
        return True, ""
    return False, str(found.get("message") or found.get("reason") or "KubeVirt does not say why")[:_WORDS]


def held(instance: Object, why: str) -> Plan:
    return Plan(c.HELD, f"{_where(instance)}; nothing is done: {why}")


def moving(instance: Object, migrations: Iterable[Object], now: dt.datetime) -> Plan:
    """The next step for a machine that can move. `migrations` are all that KubeVirt keeps in its namespace."""
    name = instance["metadata"]["name"]
    known = sorted((one for one in migrations if at(one, "spec.vmiName") == name), key=_made)
    known = [one for one in known if _made(one) >= _made(instance)]
    under_way = next((one for one in known if at(one, "status.phase") not in _DONE), None)
    if under_way is not None:
        return Plan(c.MIGRATING, f"{_where(instance)} and moves while it runs: {_progress(instance, under_way)}")
    last = known[-1] if known else None
    if last is not None and at(last, "status.phase") == "Succeeded":
        settled = _ended(last) + _SETTLES
        if now < settled:
            return Plan(c.MIGRATING, f"{_where(instance)} and has moved", until=settled)
    failed = _failures(known)
    if failed:
        again = _ended(failed[-1]) + min(FIRST_PAUSE * 2 ** (len(failed) - 1), LONGEST_PAUSE)
        # KubeVirt keeps five of them.
        times = "at least 5 times" if len(failed) >= 5 else f"{len(failed)} times" if len(failed) > 1 else "once"
        message = f"{_where(instance)}, and moving it failed {times}: {_why(instance, failed[-1])}"
        if now < again:
            return Plan(c.MIGRATION_FAILED, f"{message}; the next try is at {again:%Y-%m-%dT%H:%M:%SZ}", until=again)
    return Plan(c.MIGRATING, f"{_where(instance)} and moves while it runs: Pending", make=_migration(instance, last))


def replacing(
    instance: Object, why: str, machine: Object, pool: Object, deployment: Object | None, machines: Sequence[Object]
) -> Plan:
    """The next step for a machine that cannot move. `machines` are all of its pool."""
    said = f"{_where(instance)} and cannot move while it runs ({why})"
    if machine["metadata"].get("deletionTimestamp"):
        drain = condition_of(machine, "DrainingSucceeded") or {}
        held_up = f": {drain.get('message')}" if drain.get("status") == "False" and drain.get("message") else ""
        return Plan(c.REPLACING, f"{said}; it is drained and goes{held_up}"[:_WORDS])
    name, others = machine["metadata"]["name"], [one for one in machines if _name(one) != _name(machine)]
    size, surge, unavailable = allowance(pool, deployment)
    marked = MARK_LEAVES in annotations_of(machine)
    busy = sorted(_name(one) for one in others if goes(one))
    if not marked and len(busy) >= max(surge, unavailable, 1):
        return Plan(c.WAITING_FOR_TURN, f"{said}; it is replaced after {', '.join(busy)}")
    ready = sum(1 for one in others if not goes(one) and is_true(at(one, "status.conditions"), "NodeHealthy"))
    if ready >= size - unavailable:
        return Plan(c.REPLACING, f"{said}; its machine {name} is replaced", delete=True)
    lacking = f"{ready} of {size - unavailable} nodes that are needed beside it are ready"
    if not surge:
        return Plan(c.WAITING_FOR_TURN, f"{said}; it is replaced once enough others are ready ({lacking})")
    return Plan(c.REPLACING, f"{said}; a new machine comes first ({lacking})", mark=not marked)


def goes(machine: Object) -> bool:
    """Whether a machine is about to leave its pool."""
    return MARK_LEAVES in annotations_of(machine) or bool(machine["metadata"].get("deletionTimestamp"))


def beyond(machines: Iterable[Object]) -> int:
    """How many machines a pool has beyond its size meanwhile: a new one for each that is marked and still there."""
    return sum(
        1 for one in machines if MARK_LEAVES in annotations_of(one) and not one["metadata"].get("deletionTimestamp")
    )


def allowance(pool: Object, deployment: Object | None) -> tuple[int, int, int]:
    """The size of a pool, how many machines it may have beyond it, and how many may be missing.

    By its strategy for roll-outs. Where the load decides the size, the autoscaler makes room for what is drained. A
    pool whose machines are replaced only when somebody deletes them has one of them deleted here, like any other.
    """
    if at(pool, "spec.autoScaling"):
        return int(at(deployment, "spec.replicas", 0) or 0), 0, 1
    size = int(at(pool, "spec.replicas") or 0)
    if at(pool, "spec.management.replace.strategy") == "OnDelete":
        return size, 1, 0
    rolling = at(pool, "spec.management.replace.rollingUpdate") or {}
    surge = _amount(rolling.get("maxSurge"), size, 1, math.ceil)
    unavailable = _amount(rolling.get("maxUnavailable"), size, 0, math.floor)
    return size, surge, unavailable if surge or unavailable else 1


def mark(instance: Object, machine: Object) -> dict[str, Any]:
    """The patch that has Cluster API take this machine first, and the pool get another one."""
    notes = {MARK_LEAVES: leaves(instance), FIRST_TO_GO: ""}
    return {"metadata": {"uid": machine["metadata"]["uid"], "annotations": notes}}


def unmark(machine: Object) -> dict[str, Any] | None:
    """The patch for a machine that may stay after all; None where nothing was said."""
    if MARK_LEAVES not in annotations_of(machine) or machine["metadata"].get("deletionTimestamp"):
        return None
    return {"metadata": {"uid": machine["metadata"]["uid"], "annotations": {MARK_LEAVES: None, FIRST_TO_GO: None}}}


def pool_message(plans: Mapping[str, Plan]) -> tuple[str, str]:
    """Reason and message of a pool's condition, by its nodes; empty without any."""
    lines = [f"Node {name} {plan.message}" for name, plan in sorted(plans.items())]
    more = f"\n... and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return "And".join(sorted({plan.reason for plan in plans.values()})), "\n".join(lines[:_LINES]) + more


def _migration(instance: Object, last: Object | None) -> dict[str, Any]:
    """Named after the one before it: who asks twice asks for the same."""
    metadata = instance["metadata"]
    seed = f"{metadata['uid']}/{at(last, 'metadata.uid', '')}"
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": f"{metadata['name']}-{hashlib.sha256(seed.encode()).hexdigest()[:8]}",
            "namespace": metadata["namespace"],
            "labels": {LABEL_INFRA_ID: str(labels_of(instance).get(LABEL_INFRA_ID, ""))},
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachineInstance",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                }
            ],
        },
        "spec": {"vmiName": metadata["name"]},
    }


def _failures(known: Sequence[Object]) -> list[Object]:
    """Those that failed since the last one that did not, oldest first."""
    found: list[Object] = []
    for one in known:
        found = [*found, one] if at(one, "status.phase") == "Failed" else []
    return found


def _progress(instance: Object, migration: Object) -> str:
    phase, state = str(at(migration, "status.phase") or "Pending"), at(instance, "status.migrationState") or {}
    mine = state.get("migrationUid") == migration["metadata"]["uid"]
    target = f" to infra node {state['targetNode']}" if mine and state.get("targetNode") else ""
    told = [str(one["message"]) for one in at(migration, "status.conditions") or () if one.get("message")]
    return f"{phase}{target}{': ' + told[-1] if told else ''}"[:_WORDS]


def _why(instance: Object, migration: Object) -> str:
    for state in (at(migration, "status.migrationState") or {}, at(instance, "status.migrationState") or {}):
        if state.get("failureReason") and state.get("migrationUid", "") in ("", migration["metadata"]["uid"]):
            return str(state["failureReason"])[:_WORDS]
    return f"events of VirtualMachineInstanceMigration {migration['metadata']['name']} say why"


def _ended(migration: Object) -> dt.datetime:
    stamps = [str(at(migration, "status.migrationState.endTimestamp") or "")]
    for one in at(migration, "status.phaseTransitionTimestamps") or ():
        if one.get("phase") in _DONE:
            stamps.append(str(one.get("phaseTransitionTimestamp") or ""))
    return _time(max(stamps) or str(migration["metadata"].get("creationTimestamp")))


def _made(item: Object) -> dt.datetime:
    return _time(str(item["metadata"].get("creationTimestamp")))


def _time(stamp: str) -> dt.datetime:
    return dt.datetime.fromisoformat(stamp)


def _where(instance: Object) -> str:
    return f"has to leave infra node {leaves(instance)}"


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _amount(value: Any, size: int, default: int, rounded: Any) -> int:
    if value is None:
        return default
    text = str(value)
    return int(rounded(size * int(text[:-1]) / 100)) if text.endswith("%") else int(text)
