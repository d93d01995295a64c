"""What the autoscaler of a hosted cluster may do; the operator binds it in hosted namespaces alone."""

from __future__ import annotations

from hcp.api import names
from hcp.api.manifests import READ, Object, cluster_role, rule


def hosted_rules() -> list[Object]:
    """Sizes of pools, and marks on Machines that shall go first. It makes and deletes nothing itself."""
    group = "cluster.x-k8s.io"
    return [
        # It follows pools of a kind that we never make, wherever that is served, and waits until it may.
        rule(group, "machinedeployments machinesets machinepools", READ),
        rule(group, "machines", [*READ, "update"]),
        rule(group, "machinedeployments/scale", ["get", "patch"]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtmachinetemplates", READ),
    ]


def objects() -> list[Object]:
    return [cluster_role(names.hosted_role(names.AUTOSCALER), hosted_rules())]
