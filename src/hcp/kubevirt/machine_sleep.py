"""The machines of hosted clusters that fall asleep or wake up.

The pass over a HostedCluster says by its condition `Hibernating` which way it goes; here its machines follow, and how
far they are is handed to its next pass: the control plane ends after the last machine and is there before the first.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

from hcp.api import conditions as c
from hcp.api import pause
from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE, LABEL_INFRA_ID, control_plane_namespace
from hcp.api.paths import at, block, conditions_of
from hcp.api.spec import is_unmanaged
from hcp.errors import HcpError
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import CAPI_CLUSTERS, HOSTEDCLUSTERS, NAMESPACES, VIRTUALMACHINES, VMIS, Resource
from hcp.kubevirt import sleep_plan
from hcp.kubevirt.infra import Infra, InfraClients, credentials
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.sessions import Sessions
from hcp.kubevirt.sleep_plan import Machines
from hcp.runtime import Controller, Informer, Result, hibernation, is_true
from hcp.runtime.conditions import condition_of
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import namespace_of
from hcp.runtime.ownership import belongs, cluster_of

Object = dict[str, Any]
# An infra cluster that does not answer, or that nobody follows for us, is asked again.
_AGAIN = 5.0


class MachineSleep:
    """One key per HostedCluster; remembers how its machines are."""

    def __init__(self, ctx: OperatorContext, infras: InfraClients, sessions: Sessions) -> None:
        self._ctx = ctx
        self.infras = infras
        self.sessions = sessions
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self._planes: Informer = ctx.informers.get(CAPI_CLUSTERS, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._namespaces: Informer = ctx.informers.get(NAMESPACES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._states: dict[str, Machines] = {}
        # Told which HostedCluster to look at again, once somebody wants to know.
        self.on_change: Callable[[str], None] = lambda key: None
        self.controller = Controller("machine-sleep", self._reconcile, workers=16, group=namespace_of, per_group=4)

    def wire(self) -> Controller:
        """Look again when the stage, Cluster API's pause, an instance or a node changes."""
        self.controller.watch(self._clusters)
        self.controller.watch(self._planes, self._of_hosted)
        self.controller.watch(InfraCaches.shared(self._ctx.informers).instances, self._of_hosted)
        self.sessions.on_begin(self._begin)
        return self.controller

    def state(self, key: str) -> Machines | None:
        """None: nobody has looked yet."""
        return self._states.get(key)

    def node_changed(self, hosted: str, _name: str) -> None:
        """A Node of this guest changed; it matters only while its cluster wakes up."""
        session = self.sessions.get(hosted)
        if session is not None and hibernation.stage(session.cluster) == c.WAKING_UP:
            self.controller.enqueue(_key(session.cluster))

    def _begin(self, session: Session) -> None:
        if session.infra.external:
            key = _key(session.cluster)
            session.caches.instances.add_listener(lambda _old, _new: self.controller.enqueue(key))
        self.controller.enqueue(_key(session.cluster), fresh=False)

    def _of_hosted(self, item: Object) -> Iterable[str]:
        return cluster_of(self._namespaces.get(item["metadata"]["namespace"]) or {"metadata": {}})

    async def _reconcile(self, key: str) -> Result | None:
        cluster = self._clusters.get_key(key)
        if cluster is None or cluster["metadata"].get("deletionTimestamp") or not hibernation.resting(cluster):
            self._states.pop(key, None)
            return None
        if pause.parse(at(cluster, "spec.pausedUntil"), dt.datetime.now(dt.UTC)).paused:
            return None
        namespace, _, name = key.partition("/")
        hosted, infra_id = control_plane_namespace(namespace, name), str(at(cluster, "spec.infraID") or "")
        if is_unmanaged(cluster) or not infra_id or not belongs(self._namespaces.get(hosted), cluster):
            self._tell(key, sleep_plan.NONE)
            return None
        try:
            infra = await self.infras.get(hosted, credentials(block(cluster, "spec.platform")))
            if hibernation.sleeping(cluster):
                again = await self._stop(key, infra, infra_id, hosted)
            else:
                again = await self._start(key, cluster, infra, infra_id, hosted)
        except HcpError as error:
            self._tell(key, Machines(waiting=f"the cluster of its machines cannot be asked: {error}"))
            return Result(_AGAIN)
        return again

    async def _stop(self, key: str, infra: Infra, infra_id: str, hosted: str) -> Result | None:
        plane = self._planes.get(infra_id, hosted)
        if plane is not None and not at(plane, "spec.paused"):
            return None  # nobody may repair what is about to end; the pause is on its way
        machines, instances = await self._look(infra, infra_id)
        plans = [(vm, body) for vm in machines if (body := sleep_plan.put_to_sleep(vm)) is not None]
        await asyncio.gather(*(self._patch(infra, vm, body) for vm, body in plans))
        await asyncio.gather(*(self._end(infra, one) for one in instances))
        self._tell(key, sleep_plan.stopping(instances))
        return Result(_AGAIN) if instances and self._unfollowed(infra, hosted) else None

    async def _start(self, key: str, cluster: Object, infra: Infra, infra_id: str, hosted: str) -> Result | None:
        if not is_true(conditions_of(cluster), c.KUBE_APISERVER_AVAILABLE):
            return None  # a kubelet that finds no API server waits longer than this takes
        machines, instances = await self._look(infra, infra_id)
        plans = [(vm, body) for vm in machines if (body := sleep_plan.wake(vm)) is not None]
        await asyncio.gather(*(self._patch(infra, vm, body) for vm, body in plans))
        session, now = self.sessions.get(hosted), dt.datetime.now(dt.UTC)
        known = session.nodes.list() if session is not None and session.nodes.synced else []
        state, until = sleep_plan.waking(
            machines,
            {one["metadata"]["name"]: one for one in instances},
            {node["metadata"]["name"]: node for node in known},
            _since(cluster, now),
            now,
        )
        self._tell(key, state)
        if until is None:
            return None
        left = (until - now).total_seconds() + 1
        return Result(min(left, _AGAIN) if self._unfollowed(infra, hosted) else left)

    async def _look(self, infra: Infra, infra_id: str) -> tuple[list[Object], list[Object]]:
        """Asked of the server: what a cache has not seen yet would run on."""
        ours = f"{LABEL_INFRA_ID}={infra_id}"

        async def listed(resource: Resource) -> list[Object]:
            try:
                return await infra.client.list(resource, infra.namespace, ours)
            except NotFound:
                return []  # no such kind: no machines

        machines, instances = await asyncio.gather(listed(VIRTUALMACHINES), listed(VMIS))
        return machines, instances

    async def _patch(self, infra: Infra, vm: Object, body: Object) -> None:
        try:
            await infra.client.patch(VIRTUALMACHINES, vm["metadata"]["name"], infra.namespace, body)
        except NotFound:
            return

    async def _end(self, infra: Infra, instance: Object) -> None:
        """In good order: it has the time of its own grace period."""
        metadata = instance["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        try:
            await infra.client.delete(VMIS, metadata["name"], infra.namespace, uid=metadata["uid"], missing_ok=True)
        except Conflict:
            return  # another one by now; its watch brings the next pass

    def _unfollowed(self, infra: Infra, hosted: str) -> bool:
        """Whether no watch tells of its instances: those of an external infra cluster are followed by sessions only."""
        return infra.external and self.sessions.get(hosted) is None

    def _tell(self, key: str, state: Machines) -> None:
        if self._states.get(key) != state:
            self._states[key] = state
            self.on_change(key)


def _key(cluster: Any) -> str:
    return f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"


def _since(cluster: Object, now: dt.datetime) -> dt.datetime:
    stamp = (condition_of(cluster, c.HIBERNATING) or {}).get("lastTransitionTime")
    return dt.datetime.fromisoformat(str(stamp)) if stamp else now
