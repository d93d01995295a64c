"""What a pool finds that was there before it: machines that a restore took over, whose deployment is yet to be made.

The pool has to ask for exactly what they are, or they would be replaced for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.nodepool.scope import Scope

Object = dict[str, Any]
_REVISION = "machinedeployment.clusters.x-k8s.io/revision"


def sets(scope: Scope) -> list[Object]:
    """The pool's MachineSets, while it has no MachineDeployment; the one that was current comes first."""
    watches = scope.tools.watches
    if watches.deployments.get(scope.name, scope.hosted) is not None:
        return []
    found = [one for one in watches.of_pool(watches.sets, scope.key) if one["metadata"]["namespace"] == scope.hosted]
    return sorted(found, key=_revision, reverse=True)


def size(found: Sequence[Mapping[str, Any]]) -> int | None:
    """How many machines they have together; None where there are none."""
    return sum(int(at(one, "spec.replicas", 0)) for one in found) if found else None


def template(found: Sequence[Mapping[str, Any]]) -> str:
    """What the current machines are made of."""
    return str(at(found[0], "spec.template.spec.infrastructureRef.name", "")) if found else ""


def cache(template: Mapping[str, Any] | None) -> str:
    """The boot image cache that the machines of this template are cloned from; empty where there is none."""
    volumes = at(template, "spec.template.spec.virtualMachineTemplate.spec.dataVolumeTemplates") or []
    return next((str(name) for one in volumes if (name := at(one, "spec.source.pvc.name"))), "")


def _revision(found: Mapping[str, Any]) -> int:
    text = annotations_of(found).get(_REVISION, "")
    return int(text) if text.isdecimal() else 0
