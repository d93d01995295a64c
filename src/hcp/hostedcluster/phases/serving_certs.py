"""Certificates of the owner's for the API server, from the HostedCluster's namespace; known once its names are."""

from __future__ import annotations

from hcp.api.paths import at
from hcp.controlplane import apiserver, serving_certs
from hcp.controlplane.meta import secret_data
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import DEPLOYMENTS, SECRETS
from hcp.runtime.workloads import rolled_out


async def run(scope: Scope) -> Learned | None:
    p = scope.params
    wanted = serving_certs.asked(scope.spec)
    live = scope.cache.get(SECRETS, serving_certs.SECRET, scope.namespace)
    if not wanted:
        if live is not None and _unused(scope):
            await scope.cache.remove(SECRETS, serving_certs.SECRET, scope.namespace)
        return None
    given = {}
    for name in {one.secret for one in wanted}:
        if (source := await scope.cache.user_object(SECRETS, name, p.cluster_namespace)) is not None:
            given[name] = secret_data(source)
    found = serving_certs.choose(p, wanted, given, secret_data(live))
    # Without any that can be used there is none, unless an API server that names its files still needs them.
    if found.files:
        await scope.cache.apply(serving_certs.manifest(p, found.files))
    return Learned(
        params={"named_certs": found.certs, "api_dns_trust": found.trust},
        seen={"certificate_problems": found.problems},
    )


def _unused(scope: Scope) -> bool:
    """Keys of the owner's do not stay once every pod runs without them."""
    running = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    volumes = at(running, "spec.template.spec.volumes") or ()
    return rolled_out(running) and all(one["name"] != serving_certs.SECRET for one in volumes)
