"""Beginning and ending sessions: a hosted cluster has one while it has an API and node pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE, LABEL_NODEPOOL, control_plane_namespace
from hcp.api.paths import at, block, conditions_of, labels_of
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube.resources import HOSTEDCLUSTERS, NAMESPACES, NODEPOOLS, SECRETS
from hcp.kubevirt.infra import InfraClients, credentials
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result, hibernation, is_true
from hcp.runtime.conditions import condition_of
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import namespace_of
from hcp.runtime.ownership import belongs, cluster_of, mark
from hcp.runtime.pools import cluster_of_pool, pools_of
from hcp.runtime.store import key_of

Object = dict[str, Any]
_UNREACHABLE_RETRY = 5.0


class GuestSessions:
    """Fills `sessions`; whoever works on guests with machines is told as they begin."""

    def __init__(self, ctx: OperatorContext, infras: InfraClients, views: Views, sessions: Sessions) -> None:
        self._ctx = ctx
        self._infras = infras
        self._views = views
        self._sessions = sessions
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self._secrets: Informer = ctx.informers.get(SECRETS, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._namespaces: Informer = ctx.informers.get(NAMESPACES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._shared = InfraCaches.shared(ctx.informers)
        # Told of hosted clusters with machines of the user's own when their nodes are others or say other things.
        self.on_nodes: Callable[[Object], None] = lambda cluster: None
        self.controller = Controller("guest-sessions", self._reconcile, workers=16, group=namespace_of, per_group=4)

    def wire(self) -> Controller:
        self.controller.watch(self._clusters)
        self.controller.watch(self._pools, cluster_of_pool)
        self.controller.watch(self._namespaces, cluster_of)
        self._views.on_new(self._follow)
        self._ctx.closers.append(self.close)
        return self.controller

    def nodes(self, hosted: str) -> list[Object] | None:
        """The nodes of the cluster in this hosted namespace; None while they are not known."""
        session = self._sessions.get(hosted)
        return session.nodes.list() if session is not None and session.nodes.synced else None

    async def close(self) -> None:
        """Stop every session."""
        for session in self._sessions.all():
            await self._drop(session.hosted_namespace, key_of(dict(session.cluster)))

    def _follow(self, hosted: str, view: GuestView) -> None:
        session = self._sessions.get(hosted)
        if session is not None:  # of a view that ended with its client
            self.controller.enqueue(key_of(dict(session.cluster)))

        def listener(old: Object | None, new: Object | None) -> None:
            if old is None or new is None or _told_of(old) != _told_of(new):
                self._count(hosted)

        view.nodes.add_listener(listener)

    def _count(self, hosted: str) -> None:
        """Where nobody has Machines, pools count nodes."""
        session = self._sessions.get(hosted)
        if session is not None and session.unmanaged:
            self.on_nodes(dict(session.cluster))

    async def _reconcile(self, key: str) -> Result | None:
        cluster = self._clusters.get_key(key)
        namespace, _, name = key.partition("/")
        hosted = control_plane_namespace(namespace, name)
        if cluster is None or not self._has_pools(namespace, name):
            await self._drop(hosted, key)
            if cluster is None and mark(self._namespaces.get(hosted))[0] in ("", key):
                self._views.drop(hosted)
                self._ctx.guests.forget(hosted)
            return None
        if not belongs(self._namespaces.get(hosted), cluster):
            await self._drop(hosted, key)
            return None  # not made yet, or somebody else's: what lies in it is not this cluster's
        if hibernation.sleeping(cluster):
            await self._drop(hosted, key)
            self._views.drop(hosted)
            return None  # nobody answers there, and what its nodes look like means nothing
        infra_id, known = at(cluster, "spec.infraID"), self._sessions.get(hosted)
        if not infra_id or not (is_true(conditions_of(cluster), c.KUBE_APISERVER_AVAILABLE) or known is not None):
            return None
        guest = await self._ctx.guests.get(hosted, self._secrets.get(self._ctx.guests.secret_name, hosted))
        if guest is None:
            return Result(_UNREACHABLE_RETRY)
        infra = await self._infras.get(hosted, credentials(block(cluster, "spec.platform")))
        view = await self._views.get(hosted, guest)
        if known is not None and known.nodes is view.nodes and known.infra == infra:
            known.cluster = cluster
            return None
        await self._drop(hosted, key)
        caches = await InfraCaches.own(infra, infra_id) if infra.external else self._shared
        session = Session(hosted, cluster, infra_id, guest, infra, caches, view.nodes, view.requests)
        self._sessions.begin(session)
        await view.follow_requests()
        await session.start(lambda: self._count(hosted))
        return None

    def _has_pools(self, namespace: str, name: str) -> bool:
        return bool(pools_of(self._pools, namespace, name))

    async def _drop(self, hosted: str, key: str) -> None:
        """End the session of cluster `key`; another cluster may have the namespace whose name this one would get."""
        session = self._sessions.get(hosted)
        if session is not None and key_of(dict(session.cluster)) == key:
            self._sessions.end(hosted)
            await session.stop()


def _told_of(node: Object) -> Any:
    """Nodes report every few minutes; this is what pools and certificates are about."""
    ready = condition_of(node, "Ready") or {}
    return (
        labels_of(node).get(LABEL_NODEPOOL),
        [ready.get(field) for field in ("status", "reason", "message")],
        at(node, "status.addresses"),
        at(node, "status.nodeInfo"),
    )
