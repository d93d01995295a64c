"""What to do about a sick node, from what is known of it. Pure.

The order: leave alone what somebody works on; restart the virtual machine, as often as the pool allows; replace the
machine. What a restart cannot heal is replaced at once. Restarts are remembered on the Machine, each with the instance
it ended and the request it was for: so a restart is made once, whoever dies in between, and counted by later requests.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import ANNOTATION_RESTARTED
from hcp.api.noderepair import HELD, MOST_RESTARTS, RECOVERED, REPLACING, RESTARTING
from hcp.api.paths import at
from hcp.runtime import durations
from hcp.runtime.conditions import get_condition, is_true

Object = Mapping[str, Any]
REMEDIATE = "cluster.x-k8s.io/remediate-machine"
SKIP = ("cluster.x-k8s.io/skip-remediation", "cluster.x-k8s.io/paused")
_DEFAULT_TIMEOUT, _DEFAULT_WITHIN = 600.0, 3600.0


@dataclass(frozen=True, slots=True)
class Restart:
    """One restart: when, of which instance, for which request."""

    at: dt.datetime
    instance: str
    request: str

    def text(self) -> str:
        return f"{_stamp(self.at)}/{self.instance}/{self.request}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is under way, and what has to be done for it now."""

    phase: str
    message: str
    # Look again then.
    until: dt.datetime | None = None
    # Write this on the Machine first.
    remember: str = ""
    # End this instance (uid): KubeVirt starts another one.
    end: str = ""
    replace: bool = False


def restarts_of(machine: Object) -> list[Restart]:
    """The restarts a Machine remembers, oldest first; what cannot be read is left out."""
    found = []
    for entry in (_annotations(machine).get(ANNOTATION_RESTARTED) or "").split(","):
        at, _, rest = entry.partition("/")
        instance, _, request = rest.partition("/")
        try:
            when = dt.datetime.fromisoformat(at)
        except ValueError:
            continue
        if when.tzinfo is not None:
            found.append(Restart(when, instance, request))
    return sorted(found, key=lambda restart: restart.at)


def held(machine: Object, node: Object | None, paused: bool, check: Object | None) -> str:
    """Why nothing is done although the node is sick; empty when something shall be."""
    if paused:
        return "reconciliation is paused"
    for key in SKIP:
        if key in _annotations(machine):
            return f"the machine has the annotation {key}"
    if at(node, "spec.unschedulable") and REMEDIATE not in _annotations(machine):
        return "the node is cordoned, somebody works on it: uncordon it to have it repaired"
    allowed = get_condition(at(check, "status.conditions"), "RemediationAllowed")
    if allowed is not None and allowed.get("status") == "False":
        return str(allowed.get("message") or "too many machines are unhealthy")
    return ""


def decide(request: Object, machine: Object, node: Object | None, instance: Object | None, now: dt.datetime) -> Plan:
    """The next step for a machine that may be touched. `node` and `instance` are None where there is none."""
    policy, mine = request.get("spec") or {}, str(request["metadata"]["uid"])
    timeout = dt.timedelta(seconds=_seconds(policy.get("restartTimeout"), _DEFAULT_TIMEOUT))
    allowed = min(int(policy.get("restarts", 1)), MOST_RESTARTS)
    hopeless = _beyond_restart(machine, node)
    if hopeless:
        return _replace(hopeless)
    if is_true(at(node, "status.conditions"), "Ready"):
        return Plan(RECOVERED, "the node is Ready again")
    known = restarts_of(machine)
    last = known[-1] if known and known[-1].request == mine else None
    uid = str(at(instance, "metadata.uid") or "")
    within = dt.timedelta(seconds=_seconds(policy.get("within"), _DEFAULT_WITHIN))
    counted = [restart for restart in known if now - restart.at < within or restart.request == mine]
    if last is not None and now < last.at + timeout:
        ending = "" if _going(instance) or uid != last.instance else uid
        return _wait(last.at, timeout, len(counted), allowed, end=ending)
    if not allowed:
        return _replace("no restart is allowed")
    if len(counted) >= allowed:
        return _replace(f"restarts of its virtual machine did not help ({len(counted)} of {allowed})")
    if not uid:
        return _replace("no virtual machine runs that could be restarted")
    new = Restart(now.replace(microsecond=0), uid, mine)
    remember = ",".join(restart.text() for restart in [*counted, new])
    ending = "" if _going(instance) else uid
    return _wait(new.at, timeout, len(counted) + 1, allowed, remember=remember, end=ending)


def _wait(at: dt.datetime, timeout: dt.timedelta, count: int, allowed: int, *, end: str, remember: str = "") -> Plan:
    until = at + timeout
    what = "it is restarted again" if count < allowed else "the machine is replaced"
    message = (
        f"the virtual machine was restarted at {_stamp(at)} ({count} of {allowed});"
        f" if the node is not Ready by {_stamp(until)}, {what}"
    )
    return Plan(RESTARTING, message, until=until, remember=remember, end=end)


def _replace(why: str) -> Plan:
    return Plan(REPLACING, f"the machine is replaced: {why}", replace=True)


def _beyond_restart(machine: Object, node: Object | None) -> str:
    """Why a restart is not tried; empty where it may help."""
    status = machine.get("status") or {}
    if REMEDIATE in _annotations(machine):
        return f"the annotation {REMEDIATE} asks for it"
    if status.get("failureReason") or status.get("failureMessage"):
        return f"it failed: {status.get('failureMessage') or status.get('failureReason')}"[:500]
    if not status.get("nodeRef"):
        return "it never became a node"
    if node is None:
        return "its Node was deleted"
    return ""


def pool_message(repairs: Iterable[Object]) -> tuple[str, str]:
    """Reason and message of a pool's condition for the requests there are; empty without any."""
    told = [(str(r["metadata"]["name"]), r.get("status") or {}) for r in repairs]
    told = [(name, status) for name, status in told if status.get("phase") in (HELD, RESTARTING, REPLACING)]
    if not told:
        return "", ""
    reasons = sorted({str(status["phase"]) for _, status in told})
    lines = [f"Node {name}: {status.get('message', '')}" for name, status in sorted(told, key=lambda one: one[0])]
    more = f"\n... and {len(lines) - 20} more" if len(lines) > 20 else ""
    return "And".join(reasons), "\n".join(lines[:20]) + more


def _annotations(item: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = item["metadata"].get("annotations") or {}
    return found


def _going(instance: Object | None) -> bool:
    return bool(at(instance, "metadata.deletionTimestamp"))


def _seconds(value: Any, default: float) -> float:
    found = durations.parse(str(value)) if value else None
    return default if found is None else found


def _stamp(at: dt.datetime) -> str:
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
