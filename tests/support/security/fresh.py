"""One management cluster for all attacks: after each file it is made as it was, which is quicker than a new one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NamedTuple

from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.kube import Client, Resource, load_config
from hcp.kube import resources as k
from hcp.kube.errors import ApiError, NotFound

# What the API server itself keeps, and what goes with its owner.
LEFT_ALONE = {
    *("events", "leases", "apiservices", "componentstatuses", "flowschemas", "prioritylevelconfigurations"),
    *("endpoints", "endpointslices", "controllerrevisions", "replicasets", "ipaddresses", "servicecidrs"),
}


class Place(NamedTuple):
    """Where an object is."""

    resource: Resource
    namespace: str
    name: str


class Fresh:
    """What was there in the beginning, and the way back to it."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._first: set[Place] = set()

    def prepare(self) -> None:
        asyncio.run(self._prepare())

    def again(self) -> None:
        """The log of the operator begins anew too: what one file made it say is not another's."""
        asyncio.run(self._again())
        log = self._server.directory / "operator.log"
        if log.exists():
            log.replace(log.with_suffix(f".{len(list(log.parent.glob('operator.*')))}"))

    async def _prepare(self) -> None:
        async with Client(load_config(self._server.kubeconfig)) as admin:
            await s.prepare(admin)
            self._first = {place async for place, _ in _everything(admin)}

    async def _again(self) -> None:
        async with Client(load_config(self._server.kubeconfig)) as admin:
            await eventually(lambda: self._cleared(admin), "what a file left is gone")
            await s.prepare(admin)

    async def _cleared(self, admin: Client) -> bool:
        """Whether nothing is left that nobody has asked to go yet; asks for what is."""
        added = {place: obj async for place, obj in _everything(admin) if place not in self._first}
        # Nobody is left whom finalizers wait for.
        held = [p for p, obj in added.items() if obj["metadata"].get("finalizers") and p.resource != k.CRDS]
        await asyncio.gather(*(_let_go(admin, place) for place in held))
        # What is in a namespace that goes needs no order of its own.
        namespaces = {place.name for place in added if place.resource == k.NAMESPACES}
        going = {place for place, obj in added.items() if "deletionTimestamp" in obj["metadata"]}
        ends = [place for place in added if place.namespace not in namespaces and place not in going]
        await asyncio.gather(
            *(admin.delete(p.resource, p.name, p.namespace or None, grace=0, missing_ok=True) for p in ends)
        )
        return not ends


async def _let_go(admin: Client, place: Place) -> None:
    with suppress(NotFound):
        body = {"metadata": {"finalizers": None}}
        await admin.patch(place.resource, place.name, place.namespace or None, body)


async def _everything(admin: Client) -> AsyncIterator[tuple[Place, Any]]:
    for resource in await _resources(admin):
        with suppress(ApiError):  # a kind that is going away
            for item in await admin.list(resource):
                yield Place(resource, item["metadata"].get("namespace", ""), item["metadata"]["name"]), item


async def _resources(admin: Client) -> list[Resource]:
    groups = (await admin.raw("GET", "/apis"))["groups"]
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found = []
    for text in versions:
        group, _, version = text.rpartition("/")
        for one in (await admin.raw("GET", f"/apis/{text}" if group else f"/api/{text}"))["resources"]:
            if "/" not in one["name"] and {"list", "delete"} <= set(one["verbs"]) and one["name"] not in LEFT_ALONE:
                found.append(Resource(group, version, one["name"], one["kind"], one["namespaced"]))
    return found
