"""The pass over one NodePool: ordered, named phases, then one status patch."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.nodepool import basics, bootstrap, placement, rollout, status, unmanaged
from hcp.nodepool.deletion import delete_pool
from hcp.nodepool.scope import Object, Scope, Tools
from hcp.runtime import Phase, Phases, Result

PHASES: Phases[Scope, Result] = Phases(
    "nodepool",
    [
        Phase("Adopt", basics.adopt),
        Phase("OwnFields", basics.own_fields),
        Phase("Pause", basics.pause),
        Phase("Release", basics.release),
        Phase("IgnitionEndpoint", basics.endpoint),
        Phase("HostedNamespace", basics.hosted_namespace),
        Phase("Platform", placement.platform),
        Phase("BootImage", placement.image),
        Phase("Configuration", bootstrap.configuration),
        Phase("MachineTemplate", rollout.template),
        Phase("MachineDeployment", rollout.deployment),
        [
            Phase("HealthCheck", rollout.health_check, critical=False),
            Phase("OldTemplates", rollout.old_templates, critical=False),
            Phase("OldSecrets", bootstrap.janitor, critical=False),
        ],
        Phase("Observe", status.observe, always=True),
    ],
    learn=lambda scope, _: scope,
)

# Machines of the user's own: no machine, template or health check is made, and nothing of KubeVirt is looked at.
UNMANAGED: Phases[Scope, Result] = Phases(
    "nodepool",
    [
        Phase("Adopt", basics.adopt),
        Phase("OwnFields", unmanaged.own_fields),
        Phase("Pause", basics.pause),
        Phase("Release", basics.release),
        Phase("IgnitionEndpoint", basics.endpoint),
        Phase("HostedNamespace", basics.hosted_namespace),
        Phase("Platform", unmanaged.platform),
        Phase("Configuration", bootstrap.configuration),
        Phase("Current", unmanaged.current),
        Phase("OldSecrets", bootstrap.janitor, critical=False),
        Phase("Observe", unmanaged.observe, always=True),
    ],
    learn=lambda scope, _: scope,
)


class NodePoolReconciler:
    """Makes each NodePool true."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def reconcile(self, key: str) -> Result | None:
        """One pass over ``namespace/name``."""
        pool = self._tools.watches.pools.get_key(key)
        if pool is None:
            return None
        if pool["metadata"].get("deletionTimestamp"):
            return await delete_pool(self._tools, pool)
        name = (pool.get("spec") or {}).get("clusterName", "")
        cluster = self._tools.watches.clusters.get(name, pool["metadata"]["namespace"])
        if cluster is None:
            await self._without_cluster(pool, name)
            return None
        if cluster["metadata"].get("deletionTimestamp"):
            return None
        scope = Scope(self._tools, dict(pool), cluster)
        _, report = await (UNMANAGED if scope.unmanaged else PHASES).run(scope, nodepool=key)
        await status.write(scope)
        report.raise_if_failed()
        return None if report.again is None else Result(report.again)

    async def _without_cluster(self, pool: Object, name: str) -> None:
        stand_in = {"metadata": {"name": name, "namespace": pool["metadata"]["namespace"]}}
        scope = Scope(self._tools, dict(pool), stand_in)
        scope.set(c.READY, False, c.NOT_FOUND, f"the hosted cluster {name!r} does not exist in this namespace")
        await status.write(scope)
