"""How many pods a drain may take away at once."""

from __future__ import annotations

from hcp.controlplane.meta import component_labels, obj
from hcp.controlplane.params import Manifest, Params


def budgets(p: Params) -> list[Manifest]:
    """etcd and kube-apiserver: never below what serves, but a pod that is broken anyway may always go."""
    limit = {"maxUnavailable": 1} if p.highly_available else {"minAvailable": 1}
    return [
        obj(
            p,
            "policy/v1",
            "PodDisruptionBudget",
            component,
            {
                "spec": {
                    "selector": {"matchLabels": component_labels(p, component)},
                    "unhealthyPodEvictionPolicy": "AlwaysAllow",
                    **limit,
                }
            },
        )
        for component in (("kube-apiserver",) if p.foreign_etcd else ("etcd", "kube-apiserver"))
    ]
