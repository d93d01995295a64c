"""How many pods a drain may take away at once."""

from __future__ import annotations

from hcp.controlplane.meta import component_labels, obj
from hcp.controlplane.params import Manifest, Params


def budgets(p: Params) -> list[Manifest]:
    """etcd and kube-apiserver: one pod at a time, and one that is broken anyway may always go.

    A single replica may go too: who drains a node would otherwise wait for ever, and it comes back elsewhere.
    """
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
                    "maxUnavailable": 1,
                }
            },
        )
        for component in (("kube-apiserver",) if p.foreign_etcd else ("etcd", "kube-apiserver"))
    ]
