"""Nodes whose machine is proven gone: their volumes are free for others from that moment on.

Only in clusters that use storage: elsewhere nothing has to wait for such a node.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api import conditions as c
from hcp.guest import storage
from hcp.guest.objects import SYSTEM
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube.errors import Conflict, NotFound, Unreachable
from hcp.kube.resources import HOSTEDCLUSTERS, NODES, PODS
from hcp.kubevirt import lost
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result, hibernation
from hcp.runtime.conditions import condition_of
from hcp.runtime.context import OperatorContext
from hcp.runtime.store import key_of

Object = dict[str, Any]
_UNREACHABLE_RETRY = 5.0
_DRIVER_RETRY = 1.0


class LostNodes:
    """One key per Node: ``hosted namespace/name``, which is that of its machine too."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions, views: Views) -> None:
        self._ctx = ctx
        self._sessions = sessions
        self._views = views
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self.controller = sessions.controller("lost-nodes", self._reconcile)

    def wire(self) -> Controller:
        """Look again when a Node, its instance or the pod of that changes."""
        self._follow_infra(InfraCaches.shared(self._ctx.informers))
        self._views.on_new(self._follow)
        self._sessions.on_begin(self._begin)
        self._clusters.add_listener(self._cluster_changed)
        return self.controller

    def _follow(self, hosted: str, view: GuestView) -> None:
        view.on_node(lambda name: self.controller.enqueue(f"{hosted}/{name}", fresh=not view.nodes.replaying))

    def _begin(self, session: Session) -> None:
        if session.infra.external and not session.unmanaged:
            self._follow_infra(session.caches)
        self._enqueue_all(session)

    def _enqueue_all(self, session: Session) -> None:
        for node in session.nodes.list():
            self.controller.enqueue(f"{session.hosted_namespace}/{node['metadata']['name']}", fresh=False)

    def _cluster_changed(self, old: Object | None, new: Object | None) -> None:
        """Nodes that did not come back with their cluster are looked at when it counts as awake."""
        if hibernation.resting(old) and not hibernation.resting(new):
            for session in self._sessions.all():
                if new is not None and key_of(dict(session.cluster)) == key_of(new):
                    self._enqueue_all(session)

    def _follow_infra(self, caches: InfraCaches) -> None:
        self._listen(caches.instances, lambda item: [item["metadata"]["name"]])
        if caches.launchers is not None:
            self._listen(caches.launchers, _machines_of)

    def _listen(self, informer: Informer, names: Any) -> None:
        def listener(old: Object | None, new: Object | None) -> None:
            if old is not None and new is not None and _phase(old) == _phase(new):
                return
            item = new or old or {}
            for session in self._sessions.with_machines_in(item["metadata"].get("namespace", "")):
                for name in names(item):
                    self.controller.enqueue(f"{session.hosted_namespace}/{name}")

        informer.add_listener(listener)

    async def _reconcile(self, key: str) -> Result | None:
        hosted, _, name = key.partition("/")
        session = self._sessions.get(hosted)
        if session is None or session.unmanaged or not _uses_volumes(session.cluster):
            return None
        if hibernation.resting(self._clusters.get_key(key_of(dict(session.cluster)))):
            return None  # its machines were stopped on purpose, and come back
        if not all(informer.synced for informer in (session.nodes, *session.caches.all)):
            return Result(0.2)
        node, instance = session.nodes.get(name), session.caches.instances.get(name, session.infra.namespace)
        if node is None:
            return None
        if instance is not None and not session.owns(instance):
            instance = None
        try:
            if lost.gone(node, instance, session.launcher_list()):
                if not lost.told(node):
                    await self._tell(session, name)
            elif instance is not None and lost.marked(node) and lost.back(node, instance):
                return await self._take_back(session, name, instance)
        except (Conflict, NotFound):
            return Result(0.2)  # it changed meanwhile
        except Unreachable:
            return Result(_UNREACHABLE_RETRY)
        return None

    async def _take_back(self, session: Session, name: str, instance: Object) -> Result | None:
        """Once it can mount volumes too. Nothing is followed for that: it is asked for some seconds, after a loss."""
        if lost.patient(instance, dt.datetime.now(dt.UTC)):
            pods = await session.guest.list(PODS, SYSTEM, f"k8s-app={storage.NODE}", f"spec.nodeName={name}")
            if not any(lost.mounts(pod, instance) for pod in pods):
                return Result(_DRIVER_RETRY)
        await session.guest.patch(NODES, name, None, lost.untaint(await session.guest.get(NODES, name)))
        return None

    async def _tell(self, session: Session, name: str) -> None:
        now = dt.datetime.now(dt.UTC)
        node = await session.guest.get(NODES, name)
        if (body := lost.taint(node, now)) is not None:
            node = await session.guest.patch(NODES, name, None, body)
            message = f"The virtual machine of node {name} has ended: its pods and volumes go to other nodes"
            self._ctx.events.event(dict(session.cluster), "Warning", "NodeOutOfService", message)
        if (body := lost.unready(node, now)) is not None:
            await session.guest.patch(NODES, name, None, body, subresource="status")
        for pod in await session.guest.list(PODS, fields=f"spec.nodeName={name}"):
            if lost.keeps_a_volume(pod):
                meta = pod["metadata"]
                await session.guest.delete(
                    PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace=0, missing_ok=True
                )


def _machines_of(pod: Object) -> list[str]:
    owners = pod["metadata"].get("ownerReferences") or ()
    return [str(one.get("name")) for one in owners if one.get("kind") == "VirtualMachineInstance"]


def _phase(item: Object) -> Any:
    """Machines report every few seconds; only this decides whether one is gone."""
    return item["metadata"].get("uid"), (item.get("status") or {}).get("phase")


def _uses_volumes(cluster: Any) -> bool:
    """Whether its storage driver was started."""
    said = condition_of(cluster, c.STORAGE_AVAILABLE)
    return said is not None and said.get("status") != "Unknown" and said.get("reason") != c.MISSING_RELEASE_IMAGES
