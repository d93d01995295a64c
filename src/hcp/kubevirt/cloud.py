"""The KubeVirt cloud controllers for all hosted clusters in one process: sessions, CSRs, nodes, repair, balancers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from hcp.api.names import ANNOTATION_NODEPOOL, LABEL_CONTROL_PLANE_NAMESPACE, LABEL_NODEPOOL, control_plane_namespace
from hcp.errors import HcpError
from hcp.kube.errors import Conflict, NotFound, Unreachable
from hcp.kube.resources import HOSTEDCLUSTERS, MACHINES, NAMESPACES, NODEPOOLS, NODES, SECRETS
from hcp.kubevirt import approver, balancers, launchers
from hcp.kubevirt.csr import Verdict, node_name
from hcp.kubevirt.infra import InfraClients, credentials
from hcp.kubevirt.loadbalancer import LABEL_SERVICE, LABEL_SERVICE_NAMESPACE
from hcp.kubevirt.nodes import node_patch
from hcp.kubevirt.repairs import Repairs
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.unmanaged import expected_nodes, is_unmanaged, pool_of
from hcp.runtime import Controller, Informer, Result, is_true
from hcp.runtime.conditions import get_condition
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Reconcile, namespace_of
from hcp.runtime.ownership import belongs, cluster_of, mark
from hcp.runtime.store import key_of

log = logging.getLogger(__name__)
Object = dict[str, Any]
_UNREACHABLE_RETRY = 5.0
_ADDRESS_RETRY = 2.0


class Cloud:
    """All sessions and the controllers that work on them."""

    def __init__(self, ctx: OperatorContext, infras: InfraClients) -> None:
        self._ctx = ctx
        self._infras = infras
        self._sessions: dict[str, Session] = {}
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self._machines: Informer = ctx.informers.get(MACHINES)
        self._secrets: Informer = ctx.informers.get(SECRETS, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._namespaces: Informer = ctx.informers.get(NAMESPACES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._shared = InfraCaches.shared(ctx.informers)
        self._nodes_changed: Callable[[Object], None] = lambda cluster: None
        # They wait for guests and infra clusters: one that hangs takes few of the workers, and none from other teams.
        self.sessions = Controller(
            "cloud-sessions", self._reconcile_session, workers=16, group=namespace_of, per_group=4
        )
        self.requests = self._for_guests("node-certificates", self._reconcile_request)
        self.nodes = self._for_guests("nodes", self._reconcile_node)
        self.balancers = self._for_guests("load-balancers", self._reconcile_balancer)
        self._repairs = Repairs(ctx, self._sessions.get)
        self.repairs = self._for_guests("node-repairs", self._repairs.reconcile)

    def _for_guests(self, name: str, reconcile: Reconcile) -> Controller:
        return Controller(name, reconcile, workers=16, group=self._team, per_group=4)

    def wire(self) -> list[Controller]:
        """Connect the watches and give the controllers to run."""
        self.sessions.watch(self._clusters)
        self.sessions.watch(self._pools, _cluster_of_pool)
        self.sessions.watch(self._namespaces, cluster_of)
        self.nodes.watch(self._pools, self._nodes_of_pool)
        self.nodes.watch(self._machines)
        self._repairs.wire(self.repairs)
        for informer in self._shared.all:
            self._follow_infra(informer)
        self._ctx.closers.append(self.close)
        return [self.sessions, self.requests, self.nodes, self.balancers, self.repairs]

    def on_nodes(self, changed: Callable[[Object], None]) -> None:
        """Tell of hosted clusters with machines of the user's own when their nodes are others or say other things."""
        self._nodes_changed = changed

    def guest_nodes(self, hosted: str) -> list[Object] | None:
        """The nodes of the cluster in this hosted namespace; None while they are not known."""
        session = self._sessions.get(hosted)
        return session.nodes.list() if session is not None and session.nodes.synced else None

    async def close(self) -> None:
        """Stop every session."""
        for hosted, session in list(self._sessions.items()):
            await self._drop(hosted, key_of(dict(session.cluster)))

    def _team(self, key: str) -> str:
        """Whose a key below a hosted namespace is: the namespace of its HostedCluster."""
        hosted = key.partition("/")[0]
        session = self._sessions.get(hosted)
        return str(session.cluster["metadata"]["namespace"]) if session is not None else hosted

    # sessions

    async def _reconcile_session(self, key: str) -> Result | None:
        cluster = self._clusters.get_key(key)
        namespace, _, name = key.partition("/")
        hosted = control_plane_namespace(namespace, name)
        if cluster is None or not self._has_pools(namespace, name):
            await self._drop(hosted, key)
            if cluster is None and mark(self._namespaces.get(hosted))[0] in ("", key):
                self._ctx.guests.forget(hosted)
            return None
        if not belongs(self._namespaces.get(hosted), cluster):
            await self._drop(hosted, key)
            return None  # not made yet, or somebody else's: what lies in it is not this cluster's
        infra_id = (cluster.get("spec") or {}).get("infraID")
        conditions = (cluster.get("status") or {}).get("conditions")
        if not infra_id or not (is_true(conditions, "KubeAPIServerAvailable") or hosted in self._sessions):
            return None
        guest = await self._ctx.guests.get(hosted, self._secrets.get(self._ctx.guests.secret_name, hosted))
        if guest is None:
            return Result(_UNREACHABLE_RETRY)
        infra = await self._infras.get(hosted, credentials((cluster.get("spec") or {}).get("platform") or {}))
        known = self._sessions.get(hosted)
        if known is not None and known.guest is guest and known.infra == infra:
            known.cluster = cluster
            return None
        await self._drop(hosted, key)
        caches = await InfraCaches.own(infra, infra_id) if infra.external else self._shared
        session = Session(hosted, cluster, infra_id, guest, infra, caches)
        self._follow_guest(session)
        self._sessions[hosted] = session
        await session.start(lambda item: self._slice_changed(session, item), lambda: self._count_nodes(session))
        self._look_at_known(session)
        return None

    def _count_nodes(self, session: Session) -> None:
        """Where nobody has Machines, pools count nodes."""
        if session.unmanaged:
            self._nodes_changed(dict(session.cluster))

    def _judge_again(self, session: Session, nodes: Collection[str]) -> None:
        """Requests for these nodes that wait; of others nothing is new."""
        for request, node in session.waiting.items():
            if node in nodes:
                self.requests.enqueue(f"{session.hosted_namespace}/{request}", fresh=False)

    def _look_at_known(self, session: Session) -> None:
        """Repairs under way, and load balancers: the Services of some may be gone, or be something else by now."""
        if session.unmanaged:
            return
        for key in self._repairs.of_session(session.hosted_namespace):
            self.repairs.enqueue(key, fresh=False)
        for known in session.caches.services.list(session.infra.namespace):
            labels = known["metadata"].get("labels") or {}
            if session.owns(known) and LABEL_SERVICE in labels:
                where = f"{labels.get(LABEL_SERVICE_NAMESPACE)}/{labels[LABEL_SERVICE]}"
                self.balancers.enqueue(f"{session.hosted_namespace}/{where}", fresh=False)

    def _has_pools(self, namespace: str, name: str) -> bool:
        return any((pool.get("spec") or {}).get("clusterName") == name for pool in self._pools.list(namespace))

    async def _drop(self, hosted: str, key: str) -> None:
        """End the session of cluster `key`; another cluster may have the namespace whose name this one would get."""
        session = self._sessions.get(hosted)
        if session is not None and key_of(dict(session.cluster)) == key:
            del self._sessions[hosted]
            await session.stop()

    def _follow_guest(self, session: Session) -> None:
        hosted = session.hosted_namespace

        def follow(informer: Informer, controller: Controller) -> None:
            def listener(old: Object | None, new: Object | None) -> None:
                metadata = (new or old or {})["metadata"]
                parts = [hosted, metadata.get("namespace"), metadata["name"]]
                controller.enqueue("/".join(part for part in parts if part), fresh=not informer.replaying)

            informer.add_listener(listener)

        def node_changed(old: Object | None, new: Object | None) -> None:
            name = (new or old or {})["metadata"]["name"]
            if self._repairs.has(name, hosted):
                self.repairs.enqueue(f"{hosted}/{name}")

        def own_node_changed(old: Object | None, new: Object | None) -> None:
            if old is None or new is None or _told_of(old) != _told_of(new):
                self._count_nodes(session)
                self._judge_again(session, [(new or old or {})["metadata"]["name"]])

        follow(session.nodes, self.nodes)
        follow(session.requests, self.requests)
        if session.unmanaged:
            session.nodes.add_listener(own_node_changed)
            return
        session.nodes.add_listener(node_changed)
        session.services.add_listener(lambda old, new: self._service_changed(session, old, new))
        if session.infra.external:
            for informer in session.caches.all:
                self._follow_infra(informer)

    def _service_changed(self, session: Session, old: Object | None, new: Object | None) -> None:
        item = new or old or {}
        kinds = {((entry or {}).get("spec") or {}).get("type") for entry in (old, new)}
        held = any((entry or {}).get("metadata", {}).get("finalizers") for entry in (old, new))
        if "LoadBalancer" in kinds or held:
            metadata = item["metadata"]
            self.balancers.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{metadata['name']}")

    def _slice_changed(self, session: Session, item: Object) -> None:
        metadata = item.get("metadata") or {}
        owner = (metadata.get("labels") or {}).get("kubernetes.io/service-name")
        service = session.services.get(owner, metadata.get("namespace")) if owner else None
        if service is not None and (service.get("spec") or {}).get("type") == "LoadBalancer":
            self.balancers.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{owner}")

    def _follow_infra(self, informer: Informer) -> None:
        """A VM or a load balancer changed: look at all load balancers and open requests of its cluster at once."""

        def listener(old: Object | None, new: Object | None) -> None:
            if old is not None and new is not None and old is not new and not _matters(old, new):
                return
            item = new or old or {}
            for session in list(self._sessions.values()):
                if session.infra.namespace == item["metadata"].get("namespace") and session.owns(item):
                    self._wake(session)

        informer.add_listener(listener)

    def _wake(self, session: Session) -> None:
        for service in session.services.list():
            if (service.get("spec") or {}).get("type") == "LoadBalancer":
                metadata = service["metadata"]
                self.balancers.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{metadata['name']}")

    def _nodes_of_pool(self, pool: Object) -> Iterable[str]:
        key = f"{pool['metadata']['namespace']}/{pool['metadata']['name']}"
        if is_unmanaged(pool):
            cluster = (pool.get("spec") or {}).get("clusterName", "")
            hosted = control_plane_namespace(pool["metadata"]["namespace"], cluster)
            if (session := self._sessions.get(hosted)) is not None and session.unmanaged:
                self._judge_again(session, expected_nodes(pool))
                yield from (f"{hosted}/{node['metadata']['name']}" for node in session.nodes.list())
            return
        for machine in self._machines.list():
            if (machine["metadata"].get("annotations") or {}).get(ANNOTATION_NODEPOOL) == key:
                yield f"{machine['metadata']['namespace']}/{machine['metadata']['name']}"

    # the three works

    async def _reconcile_request(self, key: str) -> Result | None:
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

    def _pool_of(self, session: Session, node: Object) -> Mapping[str, Any] | None:
        """The pool that made the node's machine; where nobody here made it, the one it says it is of."""
        name, meta = node["metadata"]["name"], session.cluster["metadata"]
        if session.unmanaged:
            pools = self._pools.list(meta["namespace"])
            return pool_of(node, [p for p in pools if (p.get("spec") or {}).get("clusterName") == meta["name"]])
        machine = self._machines.get(name, session.hosted_namespace) or {"metadata": {}}
        pool_key = (machine["metadata"].get("annotations") or {}).get(ANNOTATION_NODEPOOL, "")
        return self._pools.get_key(pool_key) if pool_key else None

    async def _reconcile_node(self, key: str) -> Result | None:
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

    async def _reconcile_balancer(self, key: str) -> Result | None:
        hosted, namespace, name = key.split("/", 2)
        session = self._sessions.get(hosted)
        if session is None:
            return None
        if not all(informer.synced for informer in (session.services, *session.caches.all)):
            return Result(0.2)
        try:
            await balancers.sync_service(session, namespace, name)
        except Unreachable as error:
            log.info("load balancer waits", extra={"key": key, "error": str(error)})
            return Result(_UNREACHABLE_RETRY)
        except HcpError as error:
            service = session.services.get(name, namespace)
            message = f"the load balancer of Service {namespace}/{name} cannot be made: {error}"
            self._ctx.events.event(dict(session.cluster), "Warning", "LoadBalancerFailed", message)
            log.info("load balancer failed", extra={"key": key, "known": service is not None, "error": str(error)})
            raise
        return None


def _cluster_of_pool(pool: Object) -> Iterable[str]:
    name = (pool.get("spec") or {}).get("clusterName")
    return (f"{pool['metadata']['namespace']}/{name}",) if name else ()


def _told_of(node: Object) -> Any:
    """Nodes report every few minutes; this is what pools and certificates are about."""
    status = node.get("status") or {}
    ready = get_condition(status.get("conditions"), "Ready") or {}
    return (
        (node["metadata"].get("labels") or {}).get(LABEL_NODEPOOL),
        [ready.get(field) for field in ("status", "reason", "message")],
        status.get("addresses"),
        status.get("nodeInfo"),
    )


def _matters(old: Object, new: Object) -> bool:
    """VMs report every few seconds; only phase, place, the pod's addresses and the end change a load balancer."""

    def view(item: Object) -> Any:
        status = item.get("status") or {}
        return (
            status.get("phase"),
            status.get("nodeName"),
            status.get("podIPs"),
            (item["metadata"].get("annotations") or {}).get(launchers.NETWORK_STATUS),
            status.get("loadBalancer"),
            item["metadata"].get("deletionTimestamp"),
            item.get("spec") if item.get("kind") != "VirtualMachineInstance" else None,
            item.get("endpoints"),
        )

    return bool(view(old) != view(new))
