"""The last look before the status is written: what Cluster API says about the machines. Nothing is asked."""

from __future__ import annotations

from hcp.api.paths import at, block
from hcp.api.spec import cidrs
from hcp.kubevirt.infra import credentials
from hcp.nodepool.observed import Machines
from hcp.nodepool.scope import Learned, Scope


async def run(scope: Scope) -> Learned | None:
    if scope.cluster is None:
        return None
    watches = scope.tools.watches
    machines = [m for m in watches.of_pool(watches.machines, scope.key) if m["metadata"]["namespace"] == scope.hosted]
    names = {machine["metadata"]["name"] for machine in machines}
    external = bool(credentials(block(scope.cluster, "spec.platform")))
    found = Machines(
        machines=machines,
        vm_machines=[m for m in watches.vm_machines.list(scope.hosted) if m["metadata"]["name"] in names],
        deployment=watches.deployments.get(scope.name, scope.hosted),
        check=watches.checks.get(scope.name, scope.hosted),
        leaving=dict(scope.tools.leaving(scope.key)),
        elsewhere=external or len(watches.management_nodes.keys()) != 1,
        repairs=watches.of_pool(watches.repairs, scope.key),
        in_cluster=sum(int(at(one, "spec.replicas", 0)) for one in watches.deployments.list(scope.hosted)),
        most_in_cluster=int(at(scope.cluster_spec, "autoscaling.maxNodesTotal", 0)),
        cluster_networks=cidrs(scope.cluster_spec, "clusterNetwork"),
    )
    return Learned(seen={"machines": found})
