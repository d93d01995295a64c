"""A tenant fills its cluster with objects, and a team causes events, so that whoever follows them is full."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.support.eventually import eventually

from hcp.guest import slim as guest_slim
from hcp.guest.view import GuestView
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kubevirt.infra import Infra
from hcp.kubevirt.session import InfraCaches, Session
from hcp.runtime import EventRecorder, Informer
from hcp.runtime.events import BURST, COMBINED, MAX_SIMILAR

HUGE = {f"example.com/{number}": "x" * 50_000 for number in range(4)}


def service(name: str, namespace: str, kind: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"type": kind, "ports": [{"port": 80}]},
    }


@pytest.fixture
def session(client: Client, namespace: str) -> Session:
    infra = Infra(client, namespace, external=False)
    caches = InfraCaches(*(Informer(client, k.CONFIGMAPS, namespace) for _ in range(4)))
    view = GuestView(client)
    return Session(namespace, {}, "infra", client, infra, caches, view.nodes, view.requests)


async def test_of_the_guests_objects_only_what_is_used_is_kept(
    client: Client, namespace: str, session: Session
) -> None:
    for number in range(60):
        await client.create(service(f"other-{number}", namespace, "ClusterIP", annotations=HUGE))
    balancer = service("balancer", namespace, "LoadBalancer", annotations={**HUGE, "metallb.io/pool": "blue"})
    await client.create(balancer)
    images = [{"names": [f"r.example.com/{number}"], "sizeBytes": 1} for number in range(50)]
    await client.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{namespace}", "annotations": HUGE}}
    )
    await client.patch(k.NODES, f"n-{namespace}", None, {"status": {"images": images}}, subresource="status")
    following = (session.nodes, session.requests, session.services)
    await asyncio.gather(session.start(), session.nodes.start(), session.requests.start())
    try:
        for informer in following:
            await informer.wait_synced()

        async def all_there() -> bool:
            # The first list comes from the server's cache, which may be a moment behind.
            known = (session.services.get("balancer", namespace), session.nodes.get(f"n-{namespace}"))
            return all(one is not None for one in known)

        await eventually(all_there, "what was made before is known")
        mine = [one["metadata"]["name"] for one in session.services.list(namespace)]
        assert mine == ["balancer"]
        kept = session.services.get("balancer", namespace)
        assert kept is not None
        assert not kept["metadata"].get("annotations"), "a tenant's steer nothing, so none is held"
        node = session.nodes.get(f"n-{namespace}")
        assert node is not None
        held = json.dumps([session.services.list(namespace), node])
        assert len(held) < 5_000
        # One that stops being a load balancer is let go of, and so is what it held.
        await client.patch(k.SERVICES, "balancer", namespace, {"spec": {"type": "ClusterIP"}})

        async def gone() -> bool:
            return session.services.get("balancer", namespace) is None

        await eventually(gone)
    finally:
        await asyncio.gather(session.stop(), session.nodes.stop(), session.requests.stop())


async def test_there_is_an_end_to_what_is_followed(client: Client, namespace: str) -> None:
    for number in range(50):
        await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{number:03}", "namespace": namespace}}
        )
    informer = Informer(client, k.CONFIGMAPS, namespace, most=30)
    await informer.start()
    try:
        await informer.wait_synced()

        async def full() -> bool:
            return len(informer.list()) == 30

        await eventually(full, "as many as it takes")
        late = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late", "namespace": namespace}}
        await client.create(late)
        await client.patch(k.CONFIGMAPS, "c-000", namespace, {"data": {"a": "b"}})

        async def followed() -> bool:
            return ((informer.get("c-000", namespace) or {}).get("data") or {}).get("a") == "b"

        await eventually(followed)
        assert len(informer.list()) == 30
    finally:
        await informer.stop()


async def test_denied_requests_are_counted_not_told_one_by_one(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "test")
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": namespace, "uid": "u"}}
    for number in range(500):
        await recorder.event(about, "Warning", "NodeCertificateDenied", f"csr-{number}: no such machine")
    found = await client.list(k.EVENTS, namespace)
    assert len(found) == MAX_SIMILAR + 1
    assert sum(one["message"].startswith(COMBINED) for one in found) == 1


async def test_thousands_of_objects_write_no_thousands_of_events(client: Client, namespace: str) -> None:
    recorder = EventRecorder(client, "test")
    for number in range(BURST * 4):
        meta = {"name": f"x-{number}", "namespace": namespace, "uid": f"u-{number}"}
        await recorder.event({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, "Warning", "Bad", "it is bad")
    assert len(await client.list(k.EVENTS, namespace)) <= BURST + 5
    other = {"name": "y", "namespace": "default", "uid": f"y-{namespace}"}
    await recorder.event({"apiVersion": "v1", "kind": "ConfigMap", "metadata": other}, "Warning", "Bad", namespace)
    told = [one for one in await client.list(k.EVENTS, "default") if one.get("message") == namespace]
    assert len(told) == 1


async def test_requests_with_an_answer_are_kept_by_name_only() -> None:
    answered = {
        "metadata": {"name": "a"},
        "spec": {"request": "x" * 9999},
        "status": {"conditions": [{"type": "Denied"}]},
    }
    assert len(json.dumps(guest_slim.request(answered))) < 300
    await asyncio.sleep(0)
