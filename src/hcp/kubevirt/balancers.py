"""Keeping the infra cluster's load balancers equal to the guest's Services, and telling the guest their addresses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at, labels_of
from hcp.kube.errors import NotFound
from hcp.kube.resources import ENDPOINTSLICES, SERVICES
from hcp.kubevirt.loadbalancer import (
    FINALIZER,
    LABEL_SERVICE,
    LABEL_SERVICE_NAMESPACE,
    PORTS_ERROR,
    endpoint_slices,
    infra_name,
    infra_service,
    unserved,
    wanted,
)
from hcp.kubevirt.session import Session
from hcp.runtime import apply_if_changed
from hcp.runtime.conditions import condition_of

Object = dict[str, Any]


async def sync_service(session: Session, namespace: str, name: str, annotations: Mapping[str, str] = {}) -> None:
    """Bring one guest Service's load balancer to the wanted state, or take it away; `annotations`: the owner's."""
    service = session.services.get(name, namespace)
    if service is not None and wanted(service):
        if why := unserved(service):
            await _refuse(session, service, why)
        else:
            await _ensure(session, service, annotations)
        return
    await _remove(session, namespace, name)
    if service is None:
        # Only those of type LoadBalancer are followed; it may be one of another type now that we still hold.
        service = await session.guest.get_or_none(SERVICES, name, namespace)
    if service is not None:
        await _release(session, service)


async def _refuse(session: Session, service: Object, why: str) -> None:
    """A load balancer that led to ports which are another's by now must not stay."""
    metadata = service["metadata"]
    await _remove(session, metadata["namespace"], metadata["name"])
    await _tell(session, service, [], {"status": "True", "reason": "NodePortsNeeded", "message": why})


async def _ensure(session: Session, service: Object, annotations: Mapping[str, str]) -> None:
    await _hold(session, service)
    infra = session.infra
    pods = session.launcher_list()
    desired = infra_service(service, infra.namespace, session.infra_id, selecting=pods is None, annotations=annotations)
    live = await apply_if_changed(infra.client, session.caches.services, desired)
    slices: list[Object] = []
    if pods is not None:
        local = await _local_nodes(session, service)
        slices = endpoint_slices(service, live, session.instance_list(), pods, local)
    names = {item["metadata"]["name"] for item in slices}
    for item in slices:
        await apply_if_changed(infra.client, session.caches.slices, item)
    for known in session.caches.slices.list(infra.namespace):
        metadata = known["metadata"]
        mine = (metadata.get("labels") or {}).get("kubernetes.io/service-name") == infra_name(service)
        if mine and metadata["name"] not in names:
            await _delete(session, ENDPOINTSLICES, metadata["name"])
    await _report(session, service, live)


async def _hold(session: Session, service: Object) -> None:
    """The guest Service may only go after its load balancer went."""
    finalizers = service["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        body = {"metadata": {"finalizers": [*finalizers, FINALIZER]}}
        await _patch_guest(session, service, body)


async def _release(session: Session, service: Object) -> None:
    finalizers = service["metadata"].get("finalizers") or []
    if FINALIZER in finalizers:
        if at(service, "status.loadBalancer") and not service["metadata"].get("deletionTimestamp"):
            await _patch_guest(session, service, {"status": {"loadBalancer": {"ingress": None}}}, "status")
        body = {"metadata": {"finalizers": [entry for entry in finalizers if entry != FINALIZER]}}
        await _patch_guest(session, service, body)


async def _report(session: Session, service: Object, live: Mapping[str, Any]) -> None:
    ingress = at(live, "status.loadBalancer.ingress") or []
    known = ("ip", "hostname", "ipMode", "ports")
    error = condition_of(live, PORTS_ERROR)
    # The infra cluster's own words stay there.
    said = {key: error[key] for key in ("status", "reason")} | {"message": ""} if error else None
    await _tell(session, service, [{k: v for k, v in entry.items() if k in known} for entry in ingress], said)


async def _tell(session: Session, service: Object, ingress: list[Object], error: Object | None) -> None:
    """Addresses, and what is wrong with the ports; written only when it is something else than before."""
    body: Object = {}
    if ingress != (at(service, "status.loadBalancer.ingress") or []):
        body["loadBalancer"] = {"ingress": ingress or None}
    before = list(at(service, "status.conditions") or [])
    known = condition_of(service, PORTS_ERROR) or {}
    if error != ({key: known.get(key, "") for key in ("status", "reason", "message")} if known else None):
        others = [one for one in before if one.get("type") != PORTS_ERROR]
        stamp = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body["conditions"] = [
            *others,
            *([{"type": PORTS_ERROR, "lastTransitionTime": stamp, **error}] if error else []),
        ]
    if body:
        await _patch_guest(session, service, {"status": body}, "status")


async def _local_nodes(session: Session, service: Object) -> set[str] | None:
    """With local traffic policy only nodes that run a ready endpoint take traffic."""
    if at(service, "spec.externalTrafficPolicy") != "Local":
        return None
    slices = await session.guest_slices()
    metadata = service["metadata"]
    nodes: set[str] = set()
    for item in slices.list(metadata["namespace"]):
        if labels_of(item).get("kubernetes.io/service-name") != metadata["name"]:
            continue
        for endpoint in item.get("endpoints") or []:
            if endpoint.get("nodeName") and at(endpoint, "conditions.ready") is not False:
                nodes.add(endpoint["nodeName"])
    return nodes


async def _remove(session: Session, namespace: str, name: str) -> None:
    for known in session.caches.services.list(session.infra.namespace):
        labels = known["metadata"].get("labels") or {}
        is_it = labels.get(LABEL_SERVICE) == name[:63] and labels.get(LABEL_SERVICE_NAMESPACE) == namespace
        if is_it and session.owns(known):
            await _delete(session, SERVICES, known["metadata"]["name"])


async def _delete(session: Session, resource: Any, name: str) -> None:
    try:
        await session.infra.client.delete(resource, name, session.infra.namespace)
    except NotFound:
        return


async def _patch_guest(session: Session, service: Object, body: Object, subresource: str | None = None) -> None:
    metadata = service["metadata"]
    try:
        await session.guest.patch(SERVICES, metadata["name"], metadata["namespace"], body, subresource=subresource)
    except NotFound:
        return
