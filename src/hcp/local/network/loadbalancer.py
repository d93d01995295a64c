"""`python -m hcp.local.network.loadbalancer KUBECONFIG RANGE ROUTER_ADDRESS [RANGE ROUTER_ADDRESS]`: addresses for load
balancer Services, one of each family that a Service has; the first pair is for those that say nothing of families.

kube-proxy answers the address once it is in a Service's status, and the machine routes the whole range to the node, so
handing out numbers is all there is to do. The first address is kept for the router, because the apps domain carries it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hcp.kube import Client, load_config
from hcp.kube.errors import ApiError, Conflict, NotFound
from hcp.kube.resources import SERVICES
from hcp.runtime import Controller, Informer

ROUTER_NAMESPACE = "openshift-ingress"


def wanted_address(key: str, service: dict[str, Any], range_: str, router: str, taken: Iterable[str]) -> str | None:
    """The address a Service shall have: the one it has if it is good, else the one it asks for, else a free one."""
    used = set(taken)
    network = ipaddress.ip_network(range_)
    if not key.startswith(f"{ROUTER_NAMESPACE}/"):
        used.add(router)
    asked = service["spec"].get("loadBalancerIP") or ""
    for candidate in map(_usual, (*addresses(service), asked)):
        if candidate is not None and str(candidate) not in used and candidate in network:
            return str(candidate)
    for address in network:
        if str(address) not in used:
            return str(address)
    return None


def wanted_addresses(
    key: str, service: dict[str, Any], pairs: Iterable[tuple[str, str]], taken: Iterable[str]
) -> list[str] | None:
    """An address of each family the Service has, in its order; nothing when one is missing."""
    by_family = {f"IPv{6 if ':' in router else 4}": (range_, router) for range_, router in pairs}
    families = service["spec"].get("ipFamilies") or list(by_family)[:1]
    found = [
        wanted_address(key, service, *by_family[family], taken) if family in by_family else None for family in families
    ]
    return None if None in found else [address for address in found if address]


def addresses(service: dict[str, Any]) -> list[str]:
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or []
    return [item["ip"] for item in ingress if "ip" in item]


def _usual(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """As an address, not as text: one of IPv6 can be written in many ways, and all of them are taken with it."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        return None


def is_ours(service: dict[str, Any]) -> bool:
    """Services that name another class belong to somebody else's controller."""
    spec = service["spec"]
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")


class LoadBalancers:
    """The controller. One worker, because two could hand out the same address."""

    def __init__(self, client: Client, pairs: Iterable[tuple[str, str]]) -> None:
        self.client = client
        self.pairs = list(pairs)
        self.services = Informer(client, SERVICES)
        self.controller = Controller("load-balancer", self.reconcile, workers=1)
        self.given: dict[str, list[str]] = {}

    async def run(self) -> None:
        self.controller.watch(self.services, lambda obj: [_key(obj)])
        await self.services.start()
        await self.services.wait_synced()
        await self.controller.run()

    async def reconcile(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        service = self.services.get(name, namespace)
        if service is None:
            self.given.pop(key, None)
            return
        if service["metadata"].get("deletionTimestamp"):
            return
        if not is_ours(service):
            self.given.pop(key, None)
            if addresses(service) and service["spec"].get("type") != "LoadBalancer":
                await self._write(name, namespace, [])
            return
        wanted = wanted_addresses(key, service, self.pairs, self._taken(key))
        if wanted is None:
            print(f"{key}: no address is left in {' or '.join(range_ for range_, _ in self.pairs)}", flush=True)
            return
        self.given[key] = wanted
        if addresses(service) != wanted:
            await self._write(name, namespace, [{"ip": address, "ipMode": "VIP"} for address in wanted])
            print(f"{key}: {', '.join(wanted)}", flush=True)

    def _taken(self, key: str) -> set[str]:
        """What others have, by the API and by our own memory, which is ahead of the watch."""
        taken = {address for other, given in self.given.items() if other != key for address in given}
        for service in self.services.list():
            if _key(service) != key and is_ours(service):
                taken.update(addresses(service))
        return taken

    async def _write(self, name: str, namespace: str, ingress: list[dict[str, str]]) -> None:
        body = {"status": {"loadBalancer": {"ingress": ingress or None}}}
        try:
            await self.client.patch(SERVICES, name, namespace, body, subresource="status")
        except (NotFound, Conflict):
            return


def _key(obj: dict[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


async def main(kubeconfig: str, *words: str) -> None:
    async with Client(load_config(Path(kubeconfig)), user_agent="hcp-load-balancer") as client:
        await LoadBalancers(client, zip(words[::2], words[1::2], strict=True)).run()


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except (ApiError, KeyboardInterrupt) as error:
        print(error, flush=True)
        sys.exit(1)
