"""Which kinds an API server stores itself, and in which version it writes each of them now."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube.resources import APISERVICES, CRDS, Resource

Object = Mapping[str, Any]
# They end by themselves within the hour, and there may be very many.
_SHORT_LIVED = frozenset({"events.events.k8s.io"})


@dataclass(frozen=True)
class Kind:
    """A kind of Kubernetes itself. `written`: a fingerprint of the version that is written."""

    resource: Resource
    written: str


@dataclass(frozen=True)
class Defined:
    """A kind that somebody defined, with objects that may lie in an earlier version."""

    name: str
    resource: Resource
    generation: int


def fingerprint(group: str, version: str, kind: str) -> str:
    """What discovery says of the version that is written (`storageVersionHash`)."""
    return base64.b64encode(hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()[:8]).decode()


async def own_kinds(client: Client) -> list[Kind]:
    """Kinds of Kubernetes that have ever had several versions: all but those of the core, which has v1 alone.

    What other servers serve behind this one (APIServices with a Service) they store themselves.
    """
    elsewhere = {_version(one) for one in await client.list(APISERVICES) if at(one, "spec.service")}
    defined = {at(one, "spec.group") for one in await client.list(CRDS)}
    groups = (await client.raw("GET", "/apis")).get("groups") or []
    served = [
        version["groupVersion"]
        for group in groups
        if group["name"] not in defined
        for version in group["versions"]
        if version["groupVersion"] not in elsewhere
    ]
    found = await asyncio.gather(*(client.raw("GET", f"/apis/{version}") for version in served))
    return chosen(found)


def chosen(lists: Iterable[Object]) -> list[Kind]:
    """Each stored kind once, in the version that is written where that is served, else in the preferred one."""
    found: dict[str, Kind] = {}
    for served in lists:
        group, _, version = str(served["groupVersion"]).rpartition("/")
        for one in served.get("resources") or ():
            written, verbs = str(one.get("storageVersionHash") or ""), one.get("verbs") or ()
            resource = Resource(group, version, one["name"], one["kind"], bool(one.get("namespaced")))
            if not written or not {"list", "patch"} <= set(verbs) or resource.full_name in _SHORT_LIVED:
                continue
            if resource.full_name not in found or fingerprint(group, version, one["kind"]) == written:
                found[resource.full_name] = Kind(resource, written)
    return sorted(found.values(), key=lambda kind: kind.resource.full_name)


async def defined_kinds(client: Client) -> list[Defined]:
    """Definitions whose objects may lie in more than the version that is written."""
    found = [defined_kind(one) for one in await client.list(CRDS)]
    return [one for one in found if one is not None]


def defined_kind(crd: Object) -> Defined | None:
    """None where all objects lie in the version that is written, or where they cannot be had in it."""
    spec, meta = crd["spec"], crd["metadata"]
    stored = at(crd, "status.storedVersions") or []
    written = [one for one in spec["versions"] if one.get("storage")]
    if not written or set(stored) <= {written[0]["name"]} or meta.get("deletionTimestamp"):
        return None
    served = [one["name"] for one in written if one.get("served")]
    if not served:
        served = [one["name"] for one in spec["versions"] if one.get("served")]
    if not served:
        return None
    names = spec["names"]
    resource = Resource(spec["group"], served[0], names["plural"], names["kind"], spec["scope"] == "Namespaced")
    return Defined(str(meta["name"]), resource, int(meta.get("generation") or 0))


async def trim(client: Client, kind: Defined) -> bool:
    """Say that all objects lie in the version that is written, unless the definition was changed meanwhile."""
    live = await client.get_or_none(CRDS, kind.name)
    if live is None or int(live["metadata"].get("generation") or 0) != kind.generation:
        return False
    written = next(one["name"] for one in live["spec"]["versions"] if one.get("storage"))
    body = {
        "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
        "status": {"storedVersions": [written]},
    }
    await client.patch(CRDS, kind.name, None, body, subresource="status")
    return True


def _version(api_service: Object) -> str:
    spec = api_service["spec"]
    return f"{spec['group']}/{spec['version']}" if spec.get("group") else str(spec["version"])
