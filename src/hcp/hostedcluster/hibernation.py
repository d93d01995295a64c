"""Where a cluster is between awake and asleep, and where it goes next. Pure.

Down: its machines first, then its control plane. Up: the control plane first, then its machines; it counts as awake
when every node has reported again. Each stage is written down before anybody acts on it: a new process goes on from
there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import conditions as c
from hcp.kubevirt.sleep_plan import Machines
from hcp.runtime import workloads
from hcp.runtime.conditions import Verdict
from hcp.runtime.hibernation import Wish

# What is not known of a cluster that sleeps: it stays as it was.
KEPT = (
    c.PROGRESSING,
    c.STORAGE_AVAILABLE,
    c.ETCD_ENCRYPTION_UP_TO_DATE,
    c.EXTERNAL_DNS_REACHABLE,
    c.CERTIFICATES_UP_TO_DATE,
    c.CONFIG_OPERATOR_SUCCEEDED,
    c.KUBEVIRT_LIVE_MIGRATABLE,
    c.CONTROL_PLANE_SPREAD,
    c.CLUSTER_VERSION_RETRIEVED_UPDATES,
)
# What is plainly not there.
AWAY = (c.AVAILABLE, c.ETCD_AVAILABLE, c.KUBE_APISERVER_AVAILABLE)
UNKNOWN = (c.DATA_PLANE_CONNECTION, c.CONTROL_PLANE_CONNECTION)
_STAGES = {
    c.FALLING_ASLEEP: "The cluster falls asleep",
    c.ASLEEP: "The cluster sleeps: no pod of its control plane and none of its machines runs, its data is kept",
    c.WAKING_UP: "The cluster wakes up",
    c.AWAKE: "The cluster is awake",
}


@dataclass(frozen=True)
class Sleep:
    """What a pass begins with, and what it found."""

    wish: Wish = field(default_factory=Wish)
    # As the status says it; empty for a cluster that never slept.
    stage: str = ""
    # None: nobody has looked at its machines yet.
    machines: Machines | None = None
    # Workloads of the control plane of which something runs.
    left: tuple[str, ...] = ()
    # How its owner wakes it.
    command: str = ""
    # Whether a request to its API wakes it.
    on_request: bool = False

    @property
    def quiet(self) -> bool:
        """Whether nobody looks inside, and nothing that only time changes is gone through."""
        return self.wish.asleep and self.stage in (c.FALLING_ASLEEP, c.ASLEEP)

    def empty(self, live: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the control plane shall have no pods: its machines are gone, or it has been so far before."""
        if not self.quiet:
            return False
        gone = self.machines is not None and self.machines.stopped
        found = list(live)
        return self.stage == c.ASLEEP or gone or bool(found and not any(workloads.wanted(one) for one in found))


def running(live: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Workloads that have pods, want some, or have not said yet that they have none."""
    return tuple(
        sorted(
            str(one["metadata"]["name"])
            for one in live
            if workloads.wanted(one) or not workloads.observed(one) or (one.get("status") or {}).get("replicas")
        )
    )


def following(sleep: Sleep, *, available: bool) -> str:
    """The stage after this pass."""
    if sleep.wish.asleep:
        if not sleep.quiet:
            return c.FALLING_ASLEEP
        return c.ASLEEP if sleep.stage == c.ASLEEP or not sleep.left else c.FALLING_ASLEEP
    if sleep.stage in ("", c.AWAKE):
        return sleep.stage
    back = sleep.machines is not None and sleep.machines.back
    return c.AWAKE if sleep.stage == c.WAKING_UP and available and back else c.WAKING_UP


def verdict(sleep: Sleep, stage: str) -> Verdict:
    """The condition: True only when all is gone, so that it can be waited for."""
    return stage == c.ASLEEP, stage, f"{_STAGES[stage]}{_details(sleep, stage)}"


def said(sleep: Sleep, stage: str) -> dict[str, Verdict]:
    """What other conditions say of a cluster that sleeps: no error, and how to end it."""
    text = verdict(sleep, stage)[2]
    away: dict[str, Verdict] = dict.fromkeys(AWAY, (False, c.HIBERNATING, text))
    return away | dict.fromkeys(UNKNOWN, ("Unknown", c.HIBERNATING, "The cluster sleeps"))


def _details(sleep: Sleep, stage: str) -> str:
    waiting = sleep.machines.waiting if sleep.machines is not None else ""
    if stage == c.FALLING_ASLEEP and sleep.quiet:
        return f": {waiting or 'pods end: ' + ', '.join(sleep.left)}" if waiting or sleep.left else ""
    if stage == c.WAKING_UP:
        why = " after a request to its API" if sleep.wish.called else ""
        return f"{why}: {waiting}" if sleep.stage == c.WAKING_UP and waiting else why
    date = f" at {sleep.wish.until:%Y-%m-%dT%H:%M:%SZ}" if sleep.wish.until is not None else ""
    if stage == c.ASLEEP:
        ways = [f"by itself{date}"] if date else []
        ways += ["with the first request to its API"] if sleep.on_request else []
        return f". It wakes {', '.join(ways)}, or with: {sleep.command}" if ways else f". Wake it with: {sleep.command}"
    return f". It falls asleep{date}" if stage == c.AWAKE and date else ""
