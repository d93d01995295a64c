"""Whether this cluster can be made at all, and in the namespace of its name."""

from __future__ import annotations

from hcp.controlplane import foreign_etcd
from hcp.hostedcluster import validation
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Object, Scope
from hcp.kube.resources import ROUTES
from hcp.runtime.phases import Waiting
from hcp.runtime.store import key_of

# The reason in the conditions of a cluster whose namespace is somebody else's.
FOREIGN_NAMESPACE = "ForeignNamespace"


async def run(scope: Scope) -> None:
    """Go on only with a spec that can be acted on."""
    seen, key = scope.seen, scope.params.key
    others = _rivals(scope)
    has_routes = await scope.ctx.client.has(ROUTES)
    problems = validation.problems(scope.cluster, others, has_routes=has_routes) or list(seen.config_problems)
    if endpoint := scope.params.foreign_etcd:
        problems += [text for text in (foreign_etcd.endpoint_problem(endpoint, scope.params.hidden_networks),) if text]
    if scope.claim.foreign:
        # Nothing in it is read, written or told about, until it is gone; that is followed.
        scope.tools.forget(key)
        scope.tools.foreign_namespaces.follow(key, scope.claim.namespace or {})
        problems = [scope.claim.problem, *problems]
        facts = Learned(seen={"config_problems": tuple(problems), "config_reason": FOREIGN_NAMESPACE})
        raise Waiting(scope.claim.problem, facts=facts)
    scope.tools.foreign_namespaces.forget(key)
    if problems:
        facts = Learned(seen={"config_problems": tuple(problems)})
        raise Waiting("; ".join(problems), again=LOOK_AGAIN, facts=facts)
    if seen.unsupported:
        raise Waiting("; ".join(seen.unsupported))


def _rivals(scope: Scope) -> list[Object]:
    """Clusters that claim something which this one claims too, itself among them: never gone through all."""
    clusters = scope.cache.all_clusters
    clusters.add_index("claims", validation.claims)
    found = [other for claim in validation.claims(scope.cluster) for other in clusters.by_index("claims", claim)]
    return list({key_of(other): other for other in found}.values())
