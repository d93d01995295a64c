"""Load balancers for Services inside guests: made where the machines run, and told of inside the guest."""

from __future__ import annotations

import logging
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.kube.errors import Unreachable
from hcp.kube.resources import HOSTEDCLUSTERS
from hcp.kubevirt import balancers, launchers, owner_annotations
from hcp.kubevirt.loadbalancer import LABEL_SERVICE, LABEL_SERVICE_NAMESPACE
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result
from hcp.runtime.context import OperatorContext
from hcp.runtime.store import key_of

log = logging.getLogger(__name__)
Object = dict[str, Any]
_UNREACHABLE_RETRY = 5.0


class LoadBalancers:
    """One key per Service of a guest: ``hosted namespace/namespace/name``."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions) -> None:
        self._ctx = ctx
        self._sessions = sessions
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self.controller = sessions.controller("load-balancers", self._reconcile)

    def wire(self) -> Controller:
        """Look again when a Service, a machine or a load balancer changes."""
        for informer in InfraCaches.shared(self._ctx.informers).all:
            self._follow_infra(informer)
        self._clusters.add_listener(self._cluster_changed)
        self._sessions.on_begin(self._begin)
        return self.controller

    def _begin(self, session: Session) -> None:
        if session.unmanaged:
            return
        session.on_slice = lambda item: self._slice_changed(session, item)
        session.services.add_listener(lambda old, new: self._service_changed(session, old, new))
        if session.infra.external:
            for informer in session.caches.all:
                self._follow_infra(informer)
        # Those that are there: Services of some may be gone or changed by now.
        for known in session.caches.services.list(session.infra.namespace):
            labels = known["metadata"].get("labels") or {}
            if session.owns(known) and LABEL_SERVICE in labels:
                where = f"{labels.get(LABEL_SERVICE_NAMESPACE)}/{labels[LABEL_SERVICE]}"
                self.controller.enqueue(f"{session.hosted_namespace}/{where}", fresh=False)

    def _cluster_changed(self, old: Object | None, new: Object | None) -> None:
        """Another wish of the cluster's owner goes onto all of its load balancers."""
        if owner_annotations.wanted(annotations_of(old)) == owner_annotations.wanted(annotations_of(new)):
            return
        key = key_of(new or old or {})
        for session in self._sessions.all():
            if key_of(dict(session.cluster)) == key:
                self._wake(session)

    def _service_changed(self, session: Session, old: Object | None, new: Object | None) -> None:
        item = new or old or {}
        kinds = {at(entry, "spec.type") for entry in (old, new)}
        held = any((entry or {}).get("metadata", {}).get("finalizers") for entry in (old, new))
        if "LoadBalancer" in kinds or held:
            metadata = item["metadata"]
            self.controller.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{metadata['name']}")

    def _slice_changed(self, session: Session, item: Object) -> None:
        metadata = item.get("metadata") or {}
        owner = (metadata.get("labels") or {}).get("kubernetes.io/service-name")
        service = session.services.get(owner, metadata.get("namespace")) if owner else None
        if service is not None and at(service, "spec.type") == "LoadBalancer":
            self.controller.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{owner}")

    def _follow_infra(self, informer: Informer) -> None:
        """A VM or a load balancer changed: look at all load balancers and open requests of its cluster at once."""

        def listener(old: Object | None, new: Object | None) -> None:
            if old is not None and new is not None and old is not new and not _matters(old, new):
                return
            item = new or old or {}
            for session in self._sessions.with_machines_in(item["metadata"].get("namespace", "")):
                if session.owns(item):
                    self._wake(session)

        informer.add_listener(listener)

    def _wake(self, session: Session) -> None:
        for service in session.services.list():
            if at(service, "spec.type") == "LoadBalancer":
                metadata = service["metadata"]
                self.controller.enqueue(f"{session.hosted_namespace}/{metadata['namespace']}/{metadata['name']}")

    async def _reconcile(self, key: str) -> Result | None:
        hosted, namespace, name = key.split("/", 2)
        session = self._sessions.get(hosted)
        if session is None:
            return None
        if not all(informer.synced for informer in (session.services, *session.caches.all)):
            return Result(0.2)
        try:
            owner = self._clusters.get_key(key_of(dict(session.cluster)))
            await balancers.sync_service(session, namespace, name, owner_annotations.wanted(annotations_of(owner)))
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


def _matters(old: Object, new: Object) -> bool:
    """VMs report every few seconds; only phase, place, the pod's addresses and the end change a load balancer."""

    def view(item: Object) -> Any:
        status = item.get("status") or {}
        return (
            status.get("phase"),
            status.get("nodeName"),
            status.get("podIPs"),
            annotations_of(item).get(launchers.NETWORK_STATUS),
            status.get("loadBalancer"),
            status.get("conditions") if item.get("kind") == "Service" else None,
            item["metadata"].get("deletionTimestamp"),
            item.get("spec") if item.get("kind") != "VirtualMachineInstance" else None,
            item.get("endpoints"),
        )

    return bool(view(old) != view(new))
