"""Certificates of nodes: requests inside guests are approved or denied by what is known of their machines."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hcp.api.names import control_plane_namespace
from hcp.api.paths import at
from hcp.api.spec import is_unmanaged
from hcp.guest import approver
from hcp.guest.csr import Verdict, node_name
from hcp.guest.unmanaged import expected_nodes
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube.errors import Conflict
from hcp.kube.resources import MACHINES, NODEPOOLS
from hcp.kubevirt.session import Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result
from hcp.runtime.context import OperatorContext

Object = dict[str, Any]
_ADDRESS_RETRY = 2.0


class NodeCertificates:
    """One key per request: ``hosted namespace/name``."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions, views: Views) -> None:
        self._ctx = ctx
        self._sessions = sessions
        self._views = views
        self._machines: Informer = ctx.informers.get(MACHINES)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self.controller = sessions.controller("node-certificates", self._reconcile)

    def wire(self) -> Controller:
        """Look when a request comes, and again at those that wait when their node or its pool changes."""
        self._views.on_new(self._follow)
        self._sessions.on_begin(self._begin)
        self._pools.add_listener(lambda old, new: self._pool_changed(new or old or {}))
        return self.controller

    def _follow(self, hosted: str, view: GuestView) -> None:
        def requested(old: Object | None, new: Object | None) -> None:
            name = (new or old or {})["metadata"]["name"]
            self.controller.enqueue(f"{hosted}/{name}", fresh=not view.requests.replaying)

        def node_changed(old: Object | None, new: Object | None) -> None:
            session = self._sessions.get(hosted)
            if session is not None and session.unmanaged:
                self._judge_again(session, [(new or old or {})["metadata"]["name"]])

        view.requests.add_listener(requested)
        view.nodes.add_listener(node_changed)

    def _begin(self, session: Session) -> None:
        for request in session.requests.list():
            self.controller.enqueue(f"{session.hosted_namespace}/{request['metadata']['name']}", fresh=False)

    def _pool_changed(self, pool: Object) -> None:
        if is_unmanaged(pool):
            cluster = str(at(pool, "spec.clusterName", ""))
            session = self._sessions.get(control_plane_namespace(pool["metadata"]["namespace"], cluster))
            if session is not None and session.unmanaged:
                self._judge_again(session, expected_nodes(pool))

    def _judge_again(self, session: Session, nodes: Collection[str]) -> None:
        """Requests for these nodes that wait; of others nothing is new."""
        for request, node in session.waiting.items():
            if node in nodes:
                self.controller.enqueue(f"{session.hosted_namespace}/{request}", fresh=False)

    async def _reconcile(self, key: str) -> Result | None:
        hosted, _, name = key.partition("/")
        session = self._sessions.get(hosted)
        if session is None:
            return None
        try:
            verdict = await approver.answer(session, self._machines, self._pools, name)
        except Conflict:
            return Result(0.2)
        if verdict is None:
            return None
        if verdict.approve is None and session.unmanaged:
            # What decides about machines of the user's own are nodes and pools, which are followed.
            self._wait(session, name, verdict)
            return None
        if verdict.approve is None:
            return Result(_ADDRESS_RETRY)
        kind, reason = (
            ("Normal", "NodeCertificateApproved") if verdict.approve else ("Warning", "NodeCertificateDenied")
        )
        self._ctx.events.event(dict(session.cluster), kind, reason, f"{name}: {verdict.reason}")
        return None

    def _wait(self, session: Session, name: str, verdict: Verdict) -> None:
        """Remember a request, and ask a person where one has to look: once, as it may be there for long."""
        there = {request["metadata"]["name"] for request in session.requests.list()}
        session.waiting = {request: node for request, node in session.waiting.items() if request in there}
        request = session.requests.get(name)
        if name in session.waiting or request is None:
            return
        session.waiting[name] = node_name(request)
        if verdict.by_hand:
            how = f"kubectl certificate approve {name} (with the hosted cluster's kubeconfig) lets it in"
            told = f"{name}: {verdict.reason}; {how}"
            self._ctx.events.event(dict(session.cluster), "Warning", "NodeCertificateWaits", told)
