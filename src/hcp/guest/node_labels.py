"""Labels and taints of Nodes inside guests follow those of their pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.names import ANNOTATION_NODEPOOL, control_plane_namespace
from hcp.api.paths import annotations_of, at
from hcp.api.spec import is_unmanaged
from hcp.guest.nodes import node_patch
from hcp.guest.unmanaged import pool_of
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube.errors import NotFound, Unreachable
from hcp.kube.resources import MACHINES, NODEPOOLS, NODES
from hcp.kubevirt.session import Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result
from hcp.runtime.context import OperatorContext
from hcp.runtime.pools import pool_of_made, pools_of

Object = dict[str, Any]
_UNREACHABLE_RETRY = 5.0


class NodeLabels:
    """One key per Node: ``hosted namespace/name``, which is that of its Machine too."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions, views: Views) -> None:
        self._sessions = sessions
        self._views = views
        self._machines: Informer = ctx.informers.get(MACHINES)
        self._machines.add_index("pool", pool_of_made)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self.controller = sessions.controller("nodes", self._reconcile)

    def wire(self) -> Controller:
        """Look again when a Node, its Machine or its pool changes."""
        self.controller.watch(self._pools, self._nodes_of_pool)
        self.controller.watch(self._machines)
        self._views.on_new(self._follow)
        self._sessions.on_begin(self._begin)
        return self.controller

    def _follow(self, hosted: str, view: GuestView) -> None:
        def listener(old: Object | None, new: Object | None) -> None:
            name = (new or old or {})["metadata"]["name"]
            self.controller.enqueue(f"{hosted}/{name}", fresh=not view.nodes.replaying)

        view.nodes.add_listener(listener)

    def _begin(self, session: Session) -> None:
        for node in session.nodes.list():
            self.controller.enqueue(f"{session.hosted_namespace}/{node['metadata']['name']}", fresh=False)

    def _nodes_of_pool(self, pool: Object) -> Iterable[str]:
        namespace = pool["metadata"]["namespace"]
        key = f"{namespace}/{pool['metadata']['name']}"
        if is_unmanaged(pool):
            hosted = control_plane_namespace(namespace, str(at(pool, "spec.clusterName", "")))
            session = self._sessions.get(hosted)
            if session is not None and session.unmanaged:
                yield from (f"{hosted}/{node['metadata']['name']}" for node in session.nodes.list())
            return
        for machine in self._machines.by_index("pool", key):
            yield f"{machine['metadata']['namespace']}/{machine['metadata']['name']}"

    def _pool_of(self, session: Session, node: Object) -> Mapping[str, Any] | None:
        """The pool that made the node's machine; where nobody here made it, the one it says it is of."""
        name, meta = node["metadata"]["name"], session.cluster["metadata"]
        if session.unmanaged:
            return pool_of(node, pools_of(self._pools, meta["namespace"], meta["name"]))
        key = annotations_of(self._machines.get(name, session.hosted_namespace)).get(ANNOTATION_NODEPOOL, "")
        return self._pools.get_key(key) if key else None

    async def _reconcile(self, key: str) -> Result | None:
        hosted, _, name = key.partition("/")
        session = self._sessions.get(hosted)
        node = session.nodes.get(name) if session else None
        pool = self._pool_of(session, node) if session is not None and node is not None else None
        if session is None or node is None or pool is None:
            return None
        spec = pool.get("spec") or {}
        patch = node_patch(
            node,
            pool["metadata"]["name"],
            spec.get("nodeLabels") or {},
            spec.get("taints") or [],
            unmanaged=session.unmanaged,
        )
        if patch is not None:
            try:
                await session.guest.patch(NODES, name, None, patch)
            except NotFound:
                return None
            except Unreachable:
                return Result(_UNREACHABLE_RETRY)
        return None
