"""What a node pool waits for, in words a person needs; Cluster API's own texts are pages long. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hcp.api import conditions as c
from hcp.cli.shared.health import condition, desired, explain, hindrances, nodes, pool_ready

Object = dict[str, Any]
LONGEST = 120

# Conditions that are about how far machines and nodes are. Any other one that is not as it should be is a mistake.
MACHINES = (c.ALL_MACHINES_READY, c.ALL_NODES_HEALTHY)
PROGRESS = frozenset(
    (
        *MACHINES,
        c.READY,
        c.REACHED_IGNITION_ENDPOINT,
        c.KUBEVIRT_LIVE_MIGRATABLE,
        c.UPDATING_VERSION,
        c.UPDATING_CONFIG,
        c.UPDATING_MACHINE_TEMPLATE,
    )
)
STAGES = {
    "WaitingForInfrastructure": "being made",
    "WaitingForClusterInfrastructure": "waiting for the hosted cluster",
    "WaitingForControlPlaneAvailable": "waiting for the control plane",
    "WaitingForBootstrapData": "waiting for the boot document",
    "DVPending": "waiting for a disk",
    "DVNotReady": "getting the boot disk",
    "DVImagePullFailed": "boot disk cannot be fetched",
    "VMNotReady": "starting",
    "VMCreateFailed": "cannot be made",
    "VMProvisionFailed": "cannot be started",
    "WaitingForNodeRef": "booting",
    "NodeProvisioning": "booting",
    "NodeNotFound": "booting",
    "NodeConditionsFailed": "node not ready yet",
    "Deleting": "going away",
    "Draining": "being drained",
}
# Where no machine is told of: what a pool as a whole waits for.
POOL_STAGES = {
    c.NOT_FOUND: "no machine yet",
    "WaitingForAvailableMachines": "waiting for nodes",
    c.NODES_NOT_LIVE_MIGRATABLE: "waiting for nodes",
}
ROOM = "no room for it"
ADVICE = {
    ROOM: "too little memory or CPU on the infra cluster: ask for less (--memory, --cores, --replicas), or add some",
    "boot disk cannot be fetched": "see that the release's boot disk is in its registry and the pull secret fits",
    "cannot be made": "kubectl describe the KubevirtMachine in the hosted namespace",
    "cannot be started": "kubectl describe the VirtualMachine; vm console shows how far it boots",
}
_LINE = re.compile(r"^Machine (?P<name>\S+): (?P<reason>[^:\s]+)(?:: (?P<text>.*))?$")
_NO_ROOM = re.compile(r"Unschedulable|Insufficient (memory|cpu|devices)", re.IGNORECASE)


class Told(NamedTuple):
    machine: str
    stage: str
    text: str


def wait_of(pool: Object) -> str:
    """What a pool that is not ready waits for, in one short line."""
    mistakes = mistakes_of(pool)
    if mistakes:
        return cut(explain(mistakes[0]))
    counts: dict[str, int] = {}
    for told in stages(pool):
        counts[told.stage] = counts.get(told.stage, 0) + 1
    if counts:
        return ", ".join(f"{count} {stage}" for stage, count in counts.items())
    bad = hindrances(pool)
    known = [POOL_STAGES[item["reason"]] for item in bad if item.get("reason") in POOL_STAGES]
    return known[0] if known else cut(explain(bad[0])) if bad else "waiting"


def trouble_of(pool: Object) -> str:
    """What is wrong and will not heal by waiting, and what to do; empty when a pool only needs time."""
    mistakes = mistakes_of(pool)
    name = pool["metadata"]["name"]
    if mistakes:
        return f"node pool {name}: {cut(explain(mistakes[0]))}; correct its spec, it goes on by itself"
    for told in stages(pool):
        if told.stage in ADVICE:
            why = f" ({cut(told.text)})" if told.text else ""
            return f"machine {told.machine}: {told.stage}{why}; {ADVICE[told.stage]}"
    return ""


def mistakes_of(pool: Object) -> list[Object]:
    return [item for item in hindrances(pool) if item["type"] not in PROGRESS and item.get("status") == "False"]


def stages(pool: Object) -> Iterator[Told]:
    """How far each machine is that is not done: the furthest word about it, as each of the conditions knows some."""
    found: dict[str, Told] = {}
    for kind in MACHINES:
        item = condition(pool, kind)
        if item is None or item.get("status") == "True":
            continue
        for line in str(item.get("message") or "").splitlines():
            match = _LINE.match(line.strip())
            if match:
                text = (match["text"] or "").strip()
                stage = ROOM if _NO_ROOM.search(text) else STAGES.get(match["reason"]) or words(match["reason"])
                # A machine that is not ready is told of by both; the first one knows why it is not.
                found.setdefault(match["name"], Told(match["name"], stage, text))
    yield from found.values()


def words(reason: str) -> str:
    """WaitingForAvailableMachines → waiting for available machines."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", reason).lower()


def cut(text: str) -> str:
    """The first line, and not more of it than fits beside the rest."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


def pool_line(pool: Object) -> str:
    """How many nodes there are, and what the missing ones wait for."""
    line = f"node pool {pool['metadata']['name']}: {nodes(pool)[0]} of {desired(pool)} nodes"
    return line if pool_ready(pool) else f"{line} ({wait_of(pool)})"
