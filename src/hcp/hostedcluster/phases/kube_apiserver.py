"""kube-apiserver, once its certificate can carry the published address: it never rolls for that."""

from __future__ import annotations

from hcp.controlplane import apiserver
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Scope


async def run(scope: Scope) -> None:
    if not scope.startable:
        return
    mounts = apiserver.mounted(scope.params)
    if any(authority.touched for authority in scope.authorities.values()):
        # It would read these again by itself, some time; who changes them wants to know when everybody has.
        mounts += tuple(("ConfigMap", name) for name in apiserver.NOT_HASHED)
    await scope.cache.apply(apiserver.deployment(scope.params, config_hash(scope.made[m] for m in mounts)))
