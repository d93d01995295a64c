"""How fast a hosted cluster that sleeps is back, against a new one on the same machine.

    python bench/sleep.py --kubeconfig FILE --release IMAGE [--runs 3] [--idle 60]

Needs a management cluster on this machine with the operator and hcp's router (`hcp local up`). In each run, one after
the other, so that other work weighs on all alike:

1. a new cluster, published by Route, from creation to Available: the yardstick;
2. the same cluster asleep: API writes of the operator while it sleeps, its pods;
3. woken by its owner, from the annotation to Available;
4. asleep again, and woken by a request: from the first byte of one connection to the answer of its API.

Every figure is printed with its ratio to the new one; nothing is asserted. No machines: those take what they take.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import datetime as dt
import ssl
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.control_plane import NAMESPACE, Fleet, say

from hcp.api import conditions as c
from hcp.api import names
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.runtime import hibernation
from hcp.runtime.conditions import is_true

Object = dict[str, Any]
HOLD = 1.5
PATIENCE = 600


class Sleepers(Fleet):
    """Clusters that the router publishes, and that a request wakes."""

    def manifest(self, name: str) -> Object:
        made = super().manifest(name)
        made["metadata"]["annotations"] = {names.ANNOTATION_WAKE_ON_REQUEST: "true"}
        for service in made["spec"]["services"]:
            service["servicePublishingStrategy"] = {"type": "Route"}
        return made

    async def ask(self, name: str, *, asleep: bool) -> None:
        said = hibernation.asked(asleep, dt.datetime.now(dt.UTC)) if asleep else None
        body = {"metadata": {"annotations": {names.ANNOTATION_HIBERNATE: said, names.ANNOTATION_WOKEN: None}}}
        await self._client.patch(k.HOSTEDCLUSTERS, name, NAMESPACE, body)

    async def until(self, name: str, *, asleep: bool) -> None:
        """Followed, not asked for again and again."""
        async with asyncio.timeout(PATIENCE):
            live, version = await self._client.list_with_version(k.HOSTEDCLUSTERS, NAMESPACE)
            if any(_is(one, name, asleep=asleep) for one in live):
                return
            async for _, obj in self._client.watch(k.HOSTEDCLUSTERS, NAMESPACE, resource_version=version):
                if _is(obj, name, asleep=asleep):
                    return
        raise TimeoutError

    async def marked(self, name: str) -> str:
        """The host, once its Route says that the cluster sleeps."""
        while True:
            route = await self._client.get(k.ROUTES, names.API_SERVICE, f"{NAMESPACE}-{name}")
            if names.MARK_SLEEPS_SINCE in (route["metadata"].get("annotations") or {}):
                return str(route["spec"]["host"])
            await asyncio.sleep(0.2)

    async def request(self, name: str, host: str) -> float:
        """Seconds until the hosted API has answered over one connection."""
        service = await self._client.get(k.SERVICES, "router-default", names.ROUTER_NAMESPACE)
        address = service["status"]["loadBalancer"]["ingress"][0]["ip"]
        secret = await self._client.get(k.SECRETS, "root-ca", f"{NAMESPACE}-{name}")
        context = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
        begun = time.monotonic()
        reader, writer = await asyncio.open_connection(
            address, 443, ssl=context, server_hostname=host, ssl_handshake_timeout=PATIENCE
        )
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = (await reader.readline()).decode()
        took = time.monotonic() - begun
        writer.close()
        if " 200 " not in answer:
            raise RuntimeError(f"the hosted API answered {answer!r}")
        return took


def _is(obj: Object, name: str, *, asleep: bool) -> bool:
    if obj["metadata"].get("name") != name:
        return False
    if asleep:
        return hibernation.stage(obj) == c.ASLEEP
    return is_true((obj.get("status") or {}).get("conditions"), c.AVAILABLE)


async def measure(options: argparse.Namespace) -> None:
    async with Client(load_config(options.kubeconfig)) as client:
        fleet = Sleepers(client, options.release)
        await fleet.prepare()
        try:
            await fleet.create(["warm"], PATIENCE)  # pulls images
            await fleet.remove()
            found = [await _run(fleet, f"sleeper-{number}", options.idle) for number in range(options.runs)]
        finally:
            await fleet.remove()
    for number, what in ((1, "woken by its owner, to Available"), (2, "woken by a request, to its answer")):
        ratio = statistics.median(one[number] / one[0] for one in found)
        took = statistics.median(one[number] for one in found)
        say(f"{what}: median {took:.2f} s, median ratio to a new one {ratio:.2f} (hold {HOLD})")


async def _run(fleet: Sleepers, name: str, idle: float) -> tuple[float, float, float]:
    new = (await fleet.create([name], PATIENCE))[name]
    await _sleep(fleet, name)
    await asyncio.sleep(10)
    before = await fleet.writes()
    await asyncio.sleep(idle)
    writes, memory = await fleet.writes() - before, sum((await fleet.memory(name)).values())
    begun = time.monotonic()
    await fleet.ask(name, asleep=False)
    await fleet.until(name, asleep=False)
    woken = time.monotonic() - begun
    await _sleep(fleet, name)
    called = await fleet.request(name, await fleet.marked(name))
    await fleet.remove()
    say(
        f"  new {new:.2f} s, woken {woken:.2f} s, by a request {called:.2f} s; "
        f"asleep for {idle:.0f} s: {writes:.0f} writes, {memory:.0f} MB"
    )
    return new, woken, called


async def _sleep(fleet: Sleepers, name: str) -> None:
    await fleet.ask(name, asleep=True)
    await fleet.until(name, asleep=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", default=None)
    parser.add_argument("--release", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60.0)
    asyncio.run(measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
