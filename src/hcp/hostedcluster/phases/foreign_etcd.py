"""How the API server logs in to an etcd that somebody else runs. Without that none is started, and none is touched."""

from __future__ import annotations

from hcp.controlplane import foreign_etcd
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Scope
from hcp.kube.resources import SECRETS
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned | None:
    p = scope.params
    if not p.foreign_etcd:
        return None
    name = scope.spec["etcd"]["unmanaged"]["tls"]["clientSecret"]["name"]
    source = await scope.cache.user_object(SECRETS, name, p.cluster_namespace)
    files, problem = foreign_etcd.read(source)
    if problem:
        wrong = problem if source is not None else "it does not exist"
        text = f"The Secret {p.cluster_namespace}/{name} cannot be used to log in to etcd: {wrong}"
        raise Waiting(text, again=LOOK_AGAIN, facts=Learned(seen={"foreign_etcd": text}))
    made = foreign_etcd.client_secret(p, files)
    await scope.cache.apply(made)
    return Learned(made=(made,), seen={"foreign_etcd": ""})
