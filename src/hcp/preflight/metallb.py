"""MetalLB as the giver of load balancer addresses: which pools it has, and whether anybody announces them."""

from __future__ import annotations

import asyncio

from hcp.api.paths import annotations_of, at
from hcp.kube import Client, Resource
from hcp.kube.client import Object
from hcp.kube.errors import Forbidden, NotFound
from hcp.preflight.result import Finding, fail, ok, warn

_GROUP = "metallb.io"
POOLS = Resource(_GROUP, "v1beta1", "ipaddresspools", "IPAddressPool")
ADVERTISEMENTS = (
    Resource(_GROUP, "v1beta1", "l2advertisements", "L2Advertisement"),
    Resource(_GROUP, "v1beta1", "bgpadvertisements", "BGPAdvertisement"),
)
_FROM_POOL = f"{_GROUP}/ip-allocated-from-pool"


def gave(service: Object) -> bool:
    """Whether the address of a Service is out of a pool of MetalLB."""
    return _FROM_POOL in annotations_of(service)


async def finding(client: Client, check: str, services: int, served: int) -> Finding:
    """Where all addresses come from MetalLB."""
    try:
        pools = await client.list(POOLS)
        said = [one for kind in await asyncio.gather(*(_list(client, kind) for kind in ADVERTISEMENTS)) for one in kind]
    except Forbidden:
        return ok(check, f"MetalLB is installed; {_told(services, served)}")
    giving = [one for one in pools if at(one, "spec.autoAssign") is not False]
    if not giving:
        return warn(
            check,
            "MetalLB has no pool to give new Services an address of",
            "create an IPAddressPool in its namespace, and an L2Advertisement or BGPAdvertisement",
        )
    silent = sorted(one["metadata"]["name"] for one in giving if not any(_announces(each, one) for each in said))
    if silent:
        return warn(
            check,
            f"addresses of MetalLB's pool {', '.join(silent)} are announced by nobody",
            "create an L2Advertisement or BGPAdvertisement that names it, or one that names none",
        )
    names = ", ".join(sorted(one["metadata"]["name"] for one in giving))
    if services and not served:
        return fail(
            check,
            f"MetalLB has the pool {names}, but {_told(services, served)}",
            "kubectl describe one of them: an event says why; the pool may be full or for other namespaces",
        )
    return ok(check, f"MetalLB gives them out of the pool {names}; {_told(services, served)}")


async def _list(client: Client, kind: Resource) -> list[Object]:
    try:
        return await client.list(kind)
    except NotFound:
        return []


def _announces(advertisement: Object, pool: Object) -> bool:
    """Selectors by labels may match: they are given the benefit of the doubt."""
    names = at(advertisement, "spec.ipAddressPools") or []
    selectors = at(advertisement, "spec.ipAddressPoolSelectors") or []
    return bool(selectors) or not names or pool["metadata"]["name"] in names


def _told(services: int, served: int) -> str:
    if not services:
        return "no Service uses it yet"
    return f"{served} of {services} Services have one" if served else f"none of {services} Services has one"
