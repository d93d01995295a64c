"""How many hosted clusters one operator process carries, with simulated machines and pods.

    python bench/fleet.py --clusters 100 [--nodes 3] [--idle 60] [--edits 200] [--failover] [--shards 3]

The operator is the real process (`hcp operator run`), with every controller on. The management cluster is a real etcd
and kube-apiserver; so is the API of the guests, one server behind a front that gives each guest its own address,
certificate and names (`fleet_front.py`). Kubelets, Cluster API, KubeVirt and load balancers are played
(`fleet_player.py`), at once: what is measured is the operator and the API servers, never pods or machines.

Printed for the size asked for: time until all are Available with all their nodes, writes, memory and processor time of
the operator; what is written while nothing happens; how long edits take; how long until another process leads.
Everything runs on this machine, so the API servers and players take processor time from the operator; the load is
printed beside. Nothing is asserted. With `--shards` as many processes share the clusters; memory is that of the
largest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.control_plane import spread
from bench.fleet_front import NAMESPACE, name_of
from bench.fleet_world import Team, World

from hcp.api.paths import at
from hcp.kube import resources as k
from hcp.runtime import Informer
from hcp.runtime.conditions import is_true
from hcp.runtime.shards import shard_of

Object = dict[str, Any]


def say(text: str) -> None:
    print(text, flush=True)


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0) for name, value in after.items() if value > before.get(name, 0)}


def total(values: Mapping[str, float]) -> int:
    return int(sum(values.values()))


def most(values: Mapping[str, float], count: int = 8) -> str:
    ordered = sorted(values.items(), key=lambda item: -item[1])[:count]
    return ", ".join(f"{name} {value:.0f}" for name, value in ordered)


class Fleet:
    """The clusters, as somebody who watches them sees them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.clusters = Informer(world.client, k.HOSTEDCLUSTERS, NAMESPACE)
        self.pools = Informer(world.client, k.NODEPOOLS, NAMESPACE)
        self.deployments = Informer(world.client, k.MACHINEDEPLOYMENTS)
        self.planes = Informer(world.client, k.DEPLOYMENTS, labels="app=kube-apiserver")

    async def begin(self) -> None:
        for informer in (self.clusters, self.pools, self.deployments, self.planes):
            await informer.start()
            await informer.wait_synced()

    def available(self) -> int:
        return sum(is_true(at(one, "status.conditions"), "Available") for one in self.clusters.list())

    def nodes(self) -> int:
        """As the pools count them."""
        counts = [at(one, "status.nodesInfo.nodeVersions") or [] for one in self.pools.list()]
        return sum(int(one.get("readyNodeCount") or 0) for found in counts for one in found)

    def settled(self) -> int:
        """Clusters whose version is reached: all parts inside are there."""
        return sum(at(one, "status.version.history") is not None and _complete(one) for one in self.clusters.list())

    async def create(self, patience: float) -> tuple[float, float]:
        """All at once; seconds until all are Available, and until all nodes are there too."""
        began = time.monotonic()
        limit = asyncio.Semaphore(16)

        async def one(number: int) -> None:
            async with limit:
                await self._world.client.create(self._world.cluster(number))
                await self._world.client.create(self._world.pool(number))

        await asyncio.gather(*(one(number) for number in range(self._world.clusters)))
        say(f"  created after {time.monotonic() - began:.1f} s")
        count, wanted = self._world.clusters, self._world.clusters * self._world.nodes
        first, told = 0.0, time.monotonic()
        while time.monotonic() - began < patience:
            if not first and self.available() == count:
                first = time.monotonic() - began
            if first and self.nodes() == wanted and self.settled() == count:
                return first, time.monotonic() - began
            if time.monotonic() - told > 30:
                told = time.monotonic()
                here = f"{self.available()} Available, {self.nodes()} nodes, {self.settled()} complete"
                say(f"  {told - began:.0f} s: {here}, operator {Team(self._world.operators).told()}")
            await asyncio.sleep(0.2)
        return first or float("inf"), float("inf")


def _complete(cluster: Object) -> bool:
    return any(one.get("state") == "Completed" for one in at(cluster, "status.version.history") or [])


async def quiet(world: World, operator: Team, patience: float) -> float:
    """Seconds until nothing was written for ten seconds."""
    began = time.monotonic()
    last, since = (-1, -1), time.monotonic()
    while time.monotonic() - began < patience:
        now = (total(operator.writes()), total(world.guest_writes()))
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > 10:
            return since - began
        await asyncio.sleep(1)
    return float("inf")


async def idle(world: World, operator: Team, seconds: float) -> dict[str, Any]:
    outside, inside, cpu = operator.writes(), world.guest_writes(), operator.cpu()
    requests, passes = world.stats()["requests"], operator.metrics()
    await asyncio.sleep(seconds)
    made, within = grown(outside, operator.writes()), grown(inside, world.guest_writes())
    asked = grown(requests, world.stats()["requests"])
    said = most({**made, **within})
    say(f"idle for {seconds:.0f} s: {total(made)} writes outside, {total(within)} inside guests  {said}")
    say(f"  processor time {operator.cpu() - cpu:.1f} s, requests to guests: {most(asked)}")
    ran = {n: v for n, v in grown(passes, operator.metrics()).items() if n.startswith("hcp_reconcile_total")}
    say(f"  passes: {most(ran)}")
    return {"writes": total(made), "guest_writes": total(within), "cpu": operator.cpu() - cpu}


async def edits(world: World, fleet: Fleet, count: int) -> dict[str, list[float]]:
    """One after the other, over the whole fleet: a pool's size until the MachineDeployment has it, and a cluster's
    audit profile until the API server's Deployment changes."""
    sizes: list[float] = []
    profiles: list[float] = []
    for turn in range(count):
        number = turn * 7919 % world.clusters
        name, hosted = name_of(number), f"{NAMESPACE}-{name_of(number)}"
        size = int(at(fleet.deployments.get(name, hosted), "spec.replicas") or 0)
        wanted = size + 1 if size <= world.nodes else size - 1

        def sized(name: str = name, hosted: str = hosted, wanted: int = wanted) -> bool:
            return bool(at(fleet.deployments.get(name, hosted), "spec.replicas") == wanted)

        sizes.append(await _edit(world, k.NODEPOOLS, name, {"spec": {"replicas": wanted}}, sized))
        before = at(fleet.planes.get("kube-apiserver", hosted), "metadata.generation")
        cluster = fleet.clusters.get(name, NAMESPACE)
        known = at(cluster, "spec.configuration.apiServer.audit.profile") or "Default"
        profile = "AllRequestBodies" if known == "Default" else "Default"

        def changed(hosted: str = hosted, before: Any = before) -> bool:
            return bool(at(fleet.planes.get("kube-apiserver", hosted), "metadata.generation") != before)

        body = {"spec": {"configuration": {"apiServer": {"audit": {"profile": profile}}}}}
        profiles.append(await _edit(world, k.HOSTEDCLUSTERS, name, body, changed))
    return {"pool": sizes, "cluster": profiles}


async def _edit(world: World, resource: k.Resource, name: str, body: Object, done: Any) -> float:
    began = time.monotonic()
    await world.client.patch(resource, name, NAMESPACE, body)
    while not done():
        if time.monotonic() - began > 60:
            return float("inf")
        await asyncio.sleep(0.005)
    return time.monotonic() - began


async def failover(world: World, shards: int) -> dict[str, float]:
    """Kill the leader, or one of those that share; seconds until another process ended its first pass over what was
    its, and until all of that has been gone through."""
    if shards == 1:
        other = world.operator()
        while not other.metrics():
            await asyncio.sleep(0.2)
        await asyncio.sleep(3)
    leader = world.operators[0]
    had = leader.shards()
    lost = sum(shard_of(f"{NAMESPACE}-{name_of(n)}", shards) in had for n in range(world.clusters))
    inside = world.guest_writes()
    leader.kill()
    world.operators.remove(leader)
    began = time.monotonic()
    others = Team(world.operators)
    written = others.writes()
    while not had <= set().union(*(one.shards() for one in others.all)):
        await asyncio.sleep(0.1)
    say(f"  caches of another process filled after {time.monotonic() - began:.1f} s")
    before, first = others.passes("hostedcluster"), 0.0
    while not first:
        if others.passes("hostedcluster") > before:
            first = time.monotonic() - began
        await asyncio.sleep(0.1)
    while others.passes("hostedcluster") < before + lost:
        await asyncio.sleep(0.5)
    through = time.monotonic() - began
    rest = await quiet(world, others, 600)
    made, within = grown(written, others.writes()), grown(inside, world.guest_writes())
    took = f"first pass after {first:.1f} s, all after {through:.1f} s, quiet {rest:.0f} s later"
    say(f"process with {lost} clusters killed: {took}")
    say(f"  written by the new leader: {total(made)} outside, {total(within)} inside  {most({**made, **within})}")
    return {"first": first, "all": through, "writes": total(made) + total(within)}


async def measure(options: argparse.Namespace) -> None:
    size = f"{options.clusters} clusters of {options.nodes} nodes"
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {size}")
    found: dict[str, Any] = {"clusters": options.clusters, "shards": options.shards, "load": [os.getloadavg()[0]]}
    async with World(options.clusters, options.nodes) as world:
        say(f"  logs in {world.folder}")
        fleet = Fleet(world)
        await fleet.begin()
        for _ in range(options.shards):
            world.operator(*(["--shards", str(options.shards)] if options.shards > 1 else []))
        operator = Team(world.operators)
        while not operator.passes("ignition-certificates") or not all(one.shards() for one in operator.all):
            await asyncio.sleep(0.2)
        found["empty_mib"] = operator.memory()[0]
        found["available"], found["complete"] = await fleet.create(options.patience)
        say(f"all Available after {found['available']:.1f} s, with all nodes and parts after {found['complete']:.1f} s")
        found["quiet"] = await quiet(world, operator, options.patience)
        outside, inside = operator.writes(), world.guest_writes()
        found["writes"], found["guest_writes"] = total(outside) / options.clusters, total(inside) / options.clusters
        now, peak = operator.memory()
        found |= {"mib": now, "peak_mib": peak, "cpu": operator.cpu(), "connections": world.stats()["open"]}
        say(f"  quiet after {found['quiet']:.0f} s more; load {os.getloadavg()[0]:.1f}")
        say(f"  writes per cluster: {found['writes']:.0f} outside, {found['guest_writes']:.0f} inside")
        say(f"  operator: {now:.0f} MiB (empty {found['empty_mib']:.0f}, at most {peak:.0f})")
        say(f"  each: {operator.told()}")
        say(f"  connections to guests: {found['connections']}")
        parts = {"operator": operator.cpu(), "servers": world.server_cpu()}
        parts |= {"front": world.front.cpu(), "player": world.player.cpu()}
        say("  processor time: " + ", ".join(f"{name} {value:.0f} s" for name, value in parts.items()))
        found["idle"] = await idle(world, operator, options.idle)
        found["idle_mib"] = operator.memory()[0]
        if options.edits:
            took = await edits(world, fleet, options.edits)
            for name, values in took.items():
                say(f"edits of a {name}: {spread(values)}")
            found["edits"] = {name: sorted(values)[int(len(values) * 0.99) - 1] for name, values in took.items()}
        if options.failover:
            found["failover"] = await failover(world, options.shards)
            found["failover_mib"] = world.operators[-1].memory()[0]
        found["load"].append(os.getloadavg()[0])
    say(json.dumps(found))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--edits", type=int, default=0)
    parser.add_argument("--patience", type=float, default=1800.0)
    parser.add_argument("--failover", action="store_true")
    parser.add_argument("--shards", type=int, default=1)
    asyncio.run(measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
