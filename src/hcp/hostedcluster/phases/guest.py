"""Handing what this pass knows to those who look into etcd and the guest, and taking what they found meanwhile."""

from __future__ import annotations

from hcp.controlplane import certs, rotation
from hcp.controlplane.meta import secret_data
from hcp.guest.keeper import Wanted
from hcp.guest.objects import GuestParams
from hcp.guest.own_network import own_network
from hcp.hostedcluster import autoscaling, catalogs, ingress, login, monitoring, storage, storage_move
from hcp.hostedcluster.scope import Learned, Scope
from hcp.runtime.context import PUBLISHED_KUBECONFIG
from hcp.runtime.workloads import serving


async def run(scope: Scope) -> Learned | None:
    if scope.claim.foreign:
        return None
    tools, p = scope.tools, scope.params
    login, record = scope.made.get(("Secret", "etcd-client-tls")), scope.seen.etcd_record
    tools.care.update(p, scope.cluster, login, scope.seen.etcd, scope.seen.etcd_voters)
    tools.membership.update(p, scope.cluster, login, record, scope.seen.etcd)
    kubeconfigs = {
        name: scope.made[("Secret", name)]
        for name in (PUBLISHED_KUBECONFIG, scope.ctx.guests.secret_name)
        if ("Secret", name) in scope.made
    }
    answers = serving(scope.seen.deployments.get("kube-apiserver"))
    move = storage_move.wanted(scope.cluster.get("status"))
    wanted = Wanted(p.namespace, guest_params(scope), kubeconfigs, answers, scope.seen.rewrite, move)
    tools.guests.update(p.key, wanted)
    known = tools.guests.state(p.key)
    full = tools.care.state(p.key).full
    change = tools.membership.text(p.key)
    stored = known.migration.told(move)
    told = {"etcd_full": full, "etcd_change": change, "stored": stored}
    return Learned(seen={"api_health": known.health, "guest": known.guest, **told})


def guest_params(scope: Scope) -> GuestParams | None:
    """What the parts inside the guest depend on; None while it is not known."""
    agent = scope.made.get(("Secret", "konnectivity-agent"))
    if agent is None or not scope.startable:
        return None
    data, root = secret_data(agent), scope.authorities["root-ca"]
    return GuestParams(
        scope.params,
        scope.params.images,
        own_network(scope.spec),
        scope.spec.get("infrastructureAvailabilityPolicy") == "HighlyAvailable",
        data["ca.crt"],
        data["tls.crt"],
        data["tls.key"],
        root.trusted,
        root.touched,
        rotation.on_nodes(scope.authorities),
        rotation.joined(scope.authorities, certs.KUBELET_CLIENT_CAS),
        storage.inside(scope),
        catalogs.inside(scope),
        ingress.inside(scope),
        login.inside(scope),
        monitoring.inside(scope),
        autoscaling.wanted(scope),
    )
