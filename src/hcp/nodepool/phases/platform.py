"""The KubeVirt block of the spec, and what the infra cluster can give."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD
from hcp.api.paths import block
from hcp.errors import HcpError
from hcp.kubevirt.infra import credentials
from hcp.nodepool import inherited, validation
from hcp.nodepool.placement import infra_problem
from hcp.nodepool.scope import Learned, Scope, refused
from hcp.runtime.phases import Failed

# Storage or memory may appear in a cluster that we do not follow.
_LOOK = 60.0


async def run(scope: Scope) -> Learned:
    """Check the block and find the infra cluster."""
    if problem := validation.foreign_platform(scope.spec, scope.cluster_spec):
        raise refused(c.VALID_PLATFORM_CONFIG, c.VALIDATION_FAILED, problem)
    problem = validation.platform_problem(scope.spec)
    if problem:
        message = f"validation of NodePool KubeVirt platform failed: {problem}"
        raise refused(c.VALID_MACHINE_CONFIG, c.VALIDATION_FAILED, message)
    given = credentials(block(scope.cluster, "spec.platform"))
    seen = {"credentials": given} if given else {}
    try:
        infra = await scope.tools.infras.get(scope.hosted, given)
        ours = None if infra.external else scope.tools.watches.management_nodes.list()
        problem = await infra_problem(infra, scope.platform, ours)
    except HcpError as error:
        verdict = (False, c.VALIDATION_FAILED, f"the infra cluster cannot be asked: {error}")
        raise Failed(error, Learned(said={c.VALID_PLATFORM_CONFIG: verdict}, seen=seen)) from error
    # Said, not enforced: what is missing may appear later, and machines then go on by themselves.
    verdict = (not problem, c.VALIDATION_FAILED if problem else c.AS_EXPECTED, problem or "")
    fresh = not scope.version and ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD not in scope.pool_annotations
    fresh = fresh and not inherited.sets(scope)
    return Learned(
        said={c.VALID_PLATFORM_CONFIG: verdict},
        seen=seen,
        annotations={ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD: "true"} if fresh else {},
        infra=infra,
        again=_LOOK if problem else None,
    )
