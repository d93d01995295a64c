"""Putting the machines of a hosted cluster to sleep and waking them: what is to be done, from what is known. Pure.

A machine sleeps by the run strategy `Manual` and the end of its instance. `Halted` would do the same in KubeVirt, but
Cluster API's provider takes a machine that is halted and has ended for one that failed, for good.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import MARK_ASLEEP
from hcp.api.paths import annotations_of, at
from hcp.kubevirt import lost

Object = Mapping[str, Any]
STILL, USUAL = "Manual", "Always"
# So long a node may take after its machine was started; then it is treated like any other that does not report.
PATIENCE = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Machines:
    """How the machines of one hosted cluster are."""

    # Nothing of them runs.
    stopped: bool = False
    # Each has reported from its new instance, or has had its time.
    back: bool = False
    # In words, for the condition.
    waiting: str = ""


NONE = Machines(stopped=True, back=True)


def put_to_sleep(vm: Object) -> dict[str, Any] | None:
    """The patch that keeps a machine from starting again; None where it is said already, or the machine goes anyway."""
    if MARK_ASLEEP in annotations_of(vm) or vm["metadata"].get("deletionTimestamp"):
        return None
    strategy = str(at(vm, "spec.runStrategy") or USUAL)
    return {"metadata": {"annotations": {MARK_ASLEEP: strategy}}, "spec": {"runStrategy": STILL}}


def wake(vm: Object) -> dict[str, Any] | None:
    """The patch that starts a machine again; None for one that we did not stop."""
    strategy = annotations_of(vm).get(MARK_ASLEEP)
    if strategy is None or vm["metadata"].get("deletionTimestamp"):
        return None
    return {"metadata": {"annotations": {MARK_ASLEEP: None}}, "spec": {"runStrategy": strategy}}


def stopping(instances: Iterable[Object]) -> Machines:
    """While machines are shut down."""
    names = sorted(str(one["metadata"]["name"]) for one in instances)
    return Machines(waiting=f"machines shut down: {', '.join(names)}") if names else Machines(stopped=True)


def waking(
    machines: Iterable[Object],
    instances: Mapping[str, Object],
    nodes: Mapping[str, Object],
    since: dt.datetime,
    now: dt.datetime,
) -> tuple[Machines, dt.datetime | None]:
    """While they come back: how far they are, and when the patience with the next one ends.

    A node counts when its kubelet has reported from the instance that runs now; what is known of it otherwise is from
    before it slept. `since` is when the cluster began to wake, for machines that have no instance yet.
    """
    late, ends = [], []
    for machine in machines:
        name = str(machine["metadata"]["name"])
        instance, node = instances.get(name), nodes.get(name)
        if machine["metadata"].get("deletionTimestamp") or (node is not None and lost.back(node, instance)):
            continue
        started = at(instance, "metadata.creationTimestamp")
        until = (dt.datetime.fromisoformat(started) if started else since) + PATIENCE
        if until > now:
            late.append(name)
            ends.append(until)
    if not late:
        return Machines(back=True), None
    return Machines(waiting=f"nodes have not reported yet: {', '.join(sorted(late))}"), min(ends)
