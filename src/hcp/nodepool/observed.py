"""What a pass over a NodePool has seen, gathered for the one status patch at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hcp.api.pause import Pause
from hcp.kubevirt.evacuation_plan import Plan
from hcp.runtime.conditions import Verdict

Object = dict[str, Any]


@dataclass(frozen=True)
class Machines:
    """What Cluster API says about the machines of a pool."""

    machines: Sequence[Object] = ()
    vm_machines: Sequence[Object] = ()
    deployment: Object | None = None
    check: Object | None = None
    # Requests to repair a machine.
    repairs: Sequence[Object] = ()
    # Those that have to leave their infra node, by name.
    leaving: Mapping[str, Plan] = field(default_factory=dict)
    # Whether there is another infra node where a machine could move; unknown counts as yes.
    elsewhere: bool = True
    cluster_networks: Sequence[str] = ()
    # How many machines all pools of the cluster shall have, and how many the autoscaler may make of them (0: any).
    in_cluster: int = 0
    most_in_cluster: int = 0


@dataclass(frozen=True)
class OwnMachines:
    """The nodes that machines of the user's own became, of all pools of a cluster."""

    nodes: Sequence[Object] = ()
    # How many the owner of the pool counts on.
    expected: int = 0
    # Whether there is a document for machines.
    served: bool = False
    cluster_networks: Sequence[str] = ()


@dataclass(frozen=True)
class Observed:
    """The facts that `status.compute` turns into the status."""

    pause: Pause = field(default_factory=Pause)
    # Whether the hosted cluster sleeps, or has not come back yet.
    resting: bool = False
    # What phases found: condition → verdict; None takes a condition away that is only shown while something is wrong.
    said: Mapping[str, Verdict | None] = field(default_factory=dict)
    # None: not looked at; what the status says of machines stays.
    machines: Machines | OwnMachines | None = None
    # The version all machines have, known in the pass that finds the roll-out complete.
    finished: str = ""
    # Kept in the status because deleting must also work when the hosted cluster is gone.
    credentials: Mapping[str, Any] | None = None
    cache_name: str = ""
    # Phases that failed, by name.
    errors: Mapping[str, str] = field(default_factory=dict)
