"""kube-apiserver, once its certificate can carry the published address: it never rolls for that."""

from __future__ import annotations

from hcp.api.paths import at
from hcp.controlplane import apiserver
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Object, Scope
from hcp.kube.resources import DEPLOYMENTS
from hcp.runtime import compare


async def run(scope: Scope) -> None:
    if not scope.startable:
        return
    mounts = apiserver.mounted(scope.params)
    if any(authority.touched for authority in scope.authorities.values()):
        # It would read these again by itself, some time; who changes them wants to know when everybody has.
        mounts += tuple(("ConfigMap", name) for name in apiserver.NOT_HASHED)
    await scope.cache.apply(_deployment(scope, config_hash(scope.made[m] for m in mounts)))


def _deployment(scope: Scope, mounted: str) -> Object:
    """Pods of before that know nothing of a place beside etcd look for one when they are started anew for a reason."""
    live = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    before = at(live, "spec.template")
    if before is not None and not at(before, "spec.affinity.podAffinity"):
        anywhere = apiserver.deployment(scope.params, mounted, beside_etcd=False)
        template = anywhere["spec"]["template"]
        if compare.project(template, before) == template:
            return anywhere
    return apiserver.deployment(scope.params, mounted)
