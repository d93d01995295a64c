"""The phases of a pool whose machines are the user's own (platform None): the document is kept, nothing is made."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.nodepool import joined, status, unacted, validation
from hcp.nodepool.bootstrap import CURRENT_CONFIG, CURRENT_CONFIG_VERSION
from hcp.nodepool.scope import Scope
from hcp.runtime import Result, Waiting


async def own_fields(scope: Scope) -> Result | None:
    """What the pool asks for that only whoever owns the machines can do is named, not refused."""
    spec = scope.spec
    honoured = unacted.unmanaged(spec)
    scope.set(c.FIELDS_HONOURED, *honoured)
    problem = validation.scaling_problem(spec)
    if problem:
        raise scope.refuse(c.AUTOSCALING_ENABLED, c.VALIDATION_FAILED, problem)
    for kind, asked in (
        (c.AUTOSCALING_ENABLED, spec.get("autoScaling")),
        (c.AUTOREPAIR_ENABLED, (spec.get("management") or {}).get("autoRepair")),
    ):
        scope.set(kind, False, *((c.FIELDS_NOT_HONOURED, honoured[2]) if asked else (c.AS_EXPECTED, "")))
    scope.set(c.UPDATE_MANAGEMENT_ENABLED, *unacted.update_management(spec))
    return None


async def platform(scope: Scope) -> Result | None:
    """Nothing has to be there for machines that nobody makes; which disk fits is said."""
    problem = validation.unmanaged_problem(scope.name, scope.spec) or validation.foreign_platform(
        scope.spec, scope.cluster_spec
    )
    if problem:
        raise scope.refuse(c.VALID_PLATFORM_CONFIG, c.VALIDATION_FAILED, problem)
    scope.set(c.VALID_PLATFORM_CONFIG, True, c.AS_EXPECTED, "Machines of this pool are your own: none is made for it")
    disk = scope.known_release().boot_disk
    if disk:
        scope.set(c.VALID_PLATFORM_IMAGE, True, c.AS_EXPECTED, f"A boot disk for your machines is in {disk}")
    else:
        scope.drop(c.VALID_PLATFORM_IMAGE)
    return None


async def current(scope: Scope) -> Result | None:
    """The document is all that is brought up to date here, and with it the pool is; machines are their owner's."""
    if scope.config is None:
        raise Waiting("the node configuration is not known yet")
    if scope.paused:
        return None
    scope.status["version"] = scope.known_release().version
    scope.annotations[CURRENT_CONFIG] = scope.config.without_version
    scope.annotations[CURRENT_CONFIG_VERSION] = scope.config.target
    for kind in (c.UPDATING_VERSION, c.UPDATING_CONFIG):
        scope.set(kind, False, c.AS_EXPECTED)
    return None


async def observe(scope: Scope) -> Result | None:
    """Count the nodes that joined; what is not known (an operator that just started) stays as it was."""
    nodes = scope.tools.nodes(scope.hosted)
    if nodes is None and scope.status.get("replicas"):
        return None
    found = joined.judge(scope.name, int(scope.spec.get("replicas") or 0), nodes or [])
    scope.set(c.ALL_NODES_HEALTHY, *found.healthy)
    served = bool(scope.status.get("version"))
    scope.set(c.READY, *(found.pool_ready if served else (False, c.NOT_FOUND, "There is no document for machines yet")))
    status.report_conflicts(scope, found.nodes)
    scope.status["replicas"] = found.ready
    scope.status["nodesInfo"] = {"nodeVersions": status.node_versions(found.nodes, healthy="Ready")}
    return None
