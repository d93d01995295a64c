"""Hosted control planes of ours and of Kamaji, in one run on one embedded management cluster.

    sudo .venv/bin/python bench/peers.py --name CLUSTER --release IMAGE [--runs 3] [--crowds 10 20] [--workers 1]

Needs an embedded cluster with the operator (`hcp local up`), and Kamaji, which is compiled when it is missing. Both
sides start the same programs (kube-apiserver, kube-controller-manager and kube-scheduler of the release, etcd beside
them on volumes of the same class), take their address from the same load balancers, and are asked the same way:

- until the API answers /readyz at that address, and until the control plane itself is said to be ready;
- memory (PSS) of all pods of the control planes, and of what works for all of them, a minute after the last one came;
- writes on the management cluster's API (what its own metrics count, leases and events left out, less what it writes
  when nobody asks for anything) per control plane, from creation until a minute after;
- until all is gone after deleting all at once.

One at a time they take turns, so that other work on the machine weighs on both. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import ssl
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import kamaji
from bench.control_plane import NAMESPACE, Fleet, pod_memory, say, spread

from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.resources import Resource
from hcp.local.state.layout import Layout
from hcp.runtime import is_true

Object = dict[str, Any]
_SETTLED = 60.0
_WRITE = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)$")
_VERBS = ('verb="POST"', 'verb="PUT"', 'verb="PATCH"', 'verb="APPLY"', 'verb="DELETE"', 'verb="DELETECOLLECTION"')
# Of everybody, all the time: no cluster's doing.
_UNCOUNTED = ('resource="leases"', 'resource="events"', 'resource="tokenreviews"', 'resource="subjectaccessreviews"')


@dataclass(frozen=True)
class Side:
    """One of the two: how its control planes are asked for, and where they are."""

    name: str
    kind: Resource
    namespace: str
    manifest: Callable[[str], Object]
    address: Callable[[Object], str]
    ready: Callable[[Object], bool]
    pods: Callable[[str], tuple[str, str | None]]
    """Namespace and labels of the pods of one control plane."""
    shared: tuple[str, ...]
    """Namespaces of what works for all of them."""


def _our_address(live: Object) -> str:
    endpoint = (live.get("status") or {}).get("controlPlaneEndpoint") or {}
    return f"{endpoint['host']}:{endpoint['port']}" if endpoint.get("host") else ""


def _our_readiness(live: Object) -> bool:
    return is_true((live.get("status") or {}).get("conditions"), "Available")


def _their_address(live: Object) -> str:
    return str((live.get("status") or {}).get("controlPlaneEndpoint") or "")


def _their_readiness(live: Object) -> bool:
    resources = (live.get("status") or {}).get("kubernetesResources") or {}
    return bool((resources.get("version") or {}).get("status") == "Ready")


def ours(client: Client, release: str) -> Side:
    fleet = Fleet(client, release)
    return Side(
        "hcp",
        k.HOSTEDCLUSTERS,
        NAMESPACE,
        fleet.manifest,
        _our_address,
        _our_readiness,
        lambda name: (f"{NAMESPACE}-{name}", None),
        ("hypershift",),
    )


def theirs() -> Side:
    return Side(
        "Kamaji",
        kamaji.CONTROL_PLANES,
        kamaji.TENANTS,
        kamaji.control_plane,
        _their_address,
        _their_readiness,
        lambda name: (kamaji.TENANTS, f"kamaji.clastix.io/name={name}"),
        (kamaji.SYSTEM,),
    )


@dataclass
class Times:
    """Seconds from creation."""

    answered: float
    ready: float


def _answers(address: str) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://{address}/readyz", context=context, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class Measure:
    """Both sides through the same eyes."""

    def __init__(self, client: Client, side: Side) -> None:
        self._client = client
        self.side = side

    async def create(self, names: list[str], patience: float) -> dict[str, Times]:
        """All at once; those that got there in time."""
        _, version = await self._client.list_with_version(self.side.kind, self.side.namespace)
        begun: dict[str, float] = {}
        addresses: dict[str, asyncio.Future[str]] = {n: asyncio.get_running_loop().create_future() for n in names}
        ready: dict[str, float] = {}
        answered: dict[str, float] = {}

        async def follow() -> None:
            seen = version
            while len(ready) < len(names):
                watch = self._client.watch(self.side.kind, self.side.namespace, resource_version=seen)
                async for _, live in watch:
                    seen = live["metadata"].get("resourceVersion", seen)
                    name = live["metadata"].get("name", "")
                    if name not in addresses:
                        continue
                    if (address := self.side.address(live)) and not addresses[name].done():
                        addresses[name].set_result(address)
                    if self.side.ready(live):
                        ready.setdefault(name, time.monotonic())
                    if len(ready) == len(names):
                        return

        async def ask(name: str) -> None:
            address = await addresses[name]
            while not await asyncio.to_thread(_answers, address):
                await asyncio.sleep(0.05)
            answered[name] = time.monotonic()

        work = [asyncio.create_task(follow()), *(asyncio.create_task(ask(name)) for name in names)]
        for name in names:
            begun[name] = time.monotonic()
            await self._client.create(self.side.manifest(name))
        _, late = await asyncio.wait(work, timeout=patience)
        for task in late:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        both = [name for name in names if name in ready and name in answered]
        return {name: Times(answered[name] - begun[name], ready[name] - begun[name]) for name in both}

    async def _pods(self, namespace: str, labels: str | None) -> list[str]:
        return [pod["metadata"]["uid"] for pod in await self._client.list(k.PODS, namespace, labels=labels)]

    async def memory(self, names: list[str]) -> tuple[float, float]:
        """MB of one control plane by the median, and of what works for all."""
        each = []
        for name in names:
            uids = await self._pods(*self.side.pods(name))
            each.append(sum((await asyncio.to_thread(pod_memory, uids)).values()))
        shared = [uid for namespace in self.side.shared for uid in await self._pods(namespace, None)]
        return statistics.median(each), sum((await asyncio.to_thread(pod_memory, shared)).values())

    async def _left(self) -> int:
        """Control planes, and what was made for them."""
        count: int = len(await self._client.list(self.side.kind, self.side.namespace))
        if self.side.namespace == NAMESPACE:
            spaces = await self._client.list(k.NAMESPACES)
            return count + len([s for s in spaces if s["metadata"]["name"].startswith(f"{NAMESPACE}-")])
        for kind in (k.PODS, k.SERVICES, k.SECRETS, k.CONFIGMAPS):
            made = await self._client.list(kind, self.side.namespace)
            count += sum(not each["metadata"]["name"].startswith("kube-root-ca") for each in made)
        return count

    async def remove(self, patience: float) -> tuple[float, int]:
        """Seconds until all is gone, and what was still there when patience ended."""
        begun = time.monotonic()
        for live in await self._client.list(self.side.kind, self.side.namespace):
            await self._client.delete(self.side.kind, live["metadata"]["name"], self.side.namespace, missing_ok=True)
        while (left := await self._left()) and time.monotonic() - begun < patience:
            await asyncio.sleep(0.5)
        return time.monotonic() - begun, left


async def _writes(client: Client) -> float:
    text = await client.raw_text("GET", "/metrics")
    total = 0.0
    for line in text.splitlines():
        found = _WRITE.match(line)
        if found and any(v in found["labels"] for v in _VERBS) and not any(u in found["labels"] for u in _UNCOUNTED):
            total += float(found["count"])
    return total


async def _idle_writes(client: Client, seconds: float) -> float:
    """Writes per second when nobody asks for anything."""
    before, begun = await _writes(client), time.monotonic()
    await asyncio.sleep(seconds)
    return (await _writes(client) - before) / (time.monotonic() - begun)


async def _one_at_a_time(sides: list[Measure], options: argparse.Namespace) -> None:
    for side in sides:
        await side.create(["warm"], options.patience)  # pulls images
        await side.remove(options.patience)
    taken: dict[str, list[Times]] = {side.side.name: [] for side in sides}
    gone: dict[str, list[float]] = {side.side.name: [] for side in sides}
    for number in range(options.runs):
        for side in sides:
            name = side.side.name
            taken[name] += (await side.create([f"one-{number}"], options.patience)).values()
            seconds, left = await side.remove(options.patience)
            gone[name].append(seconds)
            last = taken[name][-1] if taken[name] else Times(float("inf"), float("inf"))
            say(
                f"  {name}: answered {last.answered:.2f} s, ready {last.ready:.2f} s, gone {seconds:.1f} s, left {left}"
            )
    for name, times in taken.items():
        say(
            f"{name}, one: API answered {statistics.median(t.answered for t in times):.2f} s, "
            f"said ready {statistics.median(t.ready for t in times):.2f} s, "
            f"gone {statistics.median(gone[name]):.1f} s (medians of {len(times)})"
        )


async def _crowd(client: Client, side: Measure, count: int, options: argparse.Namespace) -> None:
    name = side.side.name
    rate = await _idle_writes(client, _SETTLED / 2)
    names = [f"crowd-{number}" for number in range(count)]
    before, begun = await _writes(client), time.monotonic()
    times = await side.create(names, options.patience)
    await asyncio.sleep(_SETTLED)
    writes = await _writes(client) - before - rate * (time.monotonic() - begun)
    each, shared = await side.memory(names)
    seconds, left = await side.remove(options.patience)
    say(f"{name}, {count} at once: {len(times)} came")
    say(f"  API answered: {spread(t.answered for t in times.values())}")
    say(f"  said ready:   {spread(t.ready for t in times.values())}")
    whole = each + shared / count
    say(f"  memory of one {each:.0f} MB, of what works for all {shared:.0f} MB, both {whole:.0f} MB each")
    say(f"  writes per control plane {writes / count:.0f} (idle before: {rate:.2f}/s)")
    say(f"  gone {seconds:.1f} s, left {left}")


async def measure(options: argparse.Namespace) -> None:
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    async with Client(load_config(Layout.of(options.name).kubeconfig)) as client:
        await Fleet(client, options.release).prepare()
        say(f"installing Kamaji with {options.workers} workers")
        await kamaji.install(client, options.name, options.workers)
        sides = [Measure(client, ours(client, options.release)), Measure(client, theirs())]
        try:
            if options.runs:
                await _one_at_a_time(sides, options)
            for count in options.crowds:
                for side in sides:
                    await _crowd(client, side, count, options)
        finally:
            for side in sides:
                await side.remove(options.patience)
            await kamaji.remove(client)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="default", help="the embedded cluster")
    parser.add_argument("--release", required=True, help="of our control planes; Kamaji's run the same programs")
    parser.add_argument("--runs", type=int, default=3, help="of each, one at a time and taking turns")
    parser.add_argument("--crowds", type=int, nargs="*", default=[10, 20], help="how many at once")
    parser.add_argument("--workers", type=int, default=1, help="of Kamaji's manager; 1 is its default")
    parser.add_argument("--patience", type=float, default=600.0)
    asyncio.run(measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
