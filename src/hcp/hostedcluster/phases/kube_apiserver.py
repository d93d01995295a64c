"""kube-apiserver, once its certificate can carry the published address: it never rolls for that.

In an upgrade of several replicas etcd's members go first: an API server that is new and a member that leaves at the
same moment are two things to wait for, and clients do not wait that long.
"""

from __future__ import annotations

from hcp.api.paths import at
from hcp.controlplane import apiserver, etcd
from hcp.controlplane.meta import config_hash
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.kube.resources import DEPLOYMENTS, STATEFULSETS
from hcp.runtime import compare, workloads


async def run(scope: Scope) -> Learned | None:
    if not scope.startable:
        return None
    if members := _members_first(scope):
        return Learned(seen={"members_first": members})
    mounts = apiserver.mounted(scope.params)
    if any(authority.touched for authority in scope.authorities.values()):
        # It would read these again by itself, some time; who changes them wants to know when everybody has.
        mounts += tuple(("ConfigMap", name) for name in apiserver.NOT_HASHED)
    await scope.cache.apply(_deployment(scope, config_hash(scope.made[m] for m in mounts)))
    return None


def _members_first(scope: Scope) -> str:
    """How far etcd's members are, while the API servers wait for them; empty when they need not."""
    p = scope.params
    live = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    members = scope.cache.get(STATEFULSETS, etcd.COMPONENT, scope.namespace)
    if live is None or members is None or p.foreign_etcd or not (p.highly_available and p.for_etcd.highly_available):
        return ""
    if workloads.image(live) == p.image(apiserver.COMPONENT):
        return ""
    if workloads.image(members) == p.image(etcd.COMPONENT) and workloads.rolled_out(members):
        return ""
    new = int(at(members, "status.updatedReplicas") or 0)
    return f"{new} of {workloads.wanted(members)} members of etcd are new, kube-apiserver follows them"


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
