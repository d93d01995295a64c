"""How fast and how small hosted control planes are, against the bare processes on the same machine.

    python bench/control_plane.py --kubeconfig FILE --release IMAGE [--crowd 20] [--most 40] [--idle 60]

Needs a management cluster on this machine with the operator installed (`hcp local up`). Measures, in one run:

1. a bare etcd + kube-apiserver until /readyz, several times, and one hosted cluster from creation to Available;
2. memory (PSS) of the four bare processes and of the four of an idle hosted cluster, after the same idle time;
3. a crowd of bare pairs started at once, then as many hosted clusters created at once: p50 and p99 until Available,
   memory each, API writes per cluster, and what the operator and its helpers held at most, with their limits;
4. more of them, until the number asked for or until they no longer come up.

Every figure is printed with the yardstick it is measured against; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.bare import PARTS, Bare, pairs_at_once, pss

from hcp.kube import Client, load_config
from hcp.kube import resources as k

Object = dict[str, Any]
NAMESPACE = "bench"
WRITES = ("create", "update", "patch", "delete")


def pod_processes(uids: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Program and folder in /proc of all processes of these pods, found by their cgroup."""
    marks = {form for uid in uids for form in (uid, uid.replace("-", "_"))}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            cgroup = (entry / "cgroup").read_text()
            command = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
        except OSError:
            continue
        if any(mark in cgroup for mark in marks):
            yield Path(command).name or "?", entry


def pod_memory(uids: Iterable[str]) -> dict[str, float]:
    """PSS by program."""
    found: dict[str, float] = {}
    for name, entry in pod_processes(uids):
        found[name] = found.get(name, 0.0) + pss(int(entry.name))
    return found


def pod_peak(uid: str) -> float:
    """The most its processes ever held at a time, in MB; what they share is counted for each."""
    total = 0.0
    for _, entry in pod_processes([uid]):
        lines = (entry / "status").read_text().splitlines()
        total += sum(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:"))
    return total


class Fleet:
    """Hosted clusters on the management cluster."""

    def __init__(self, client: Client, release: str) -> None:
        self._client = client
        self._release = release

    async def prepare(self) -> None:
        await self._client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        auths = base64.b64encode(json.dumps({"auths": {}}).encode()).decode()
        await self._client.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "pull", "namespace": NAMESPACE},
                "data": {".dockerconfigjson": auths},
            }
        )

    def manifest(self, name: str) -> Object:
        services = [
            {"service": s, "servicePublishingStrategy": {"type": t}}
            for s, t in (
                ("APIServer", "LoadBalancer"),
                ("Ignition", "Route"),
                ("Konnectivity", "Route"),
                ("OAuthServer", "Route"),
            )
        ]
        return {
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "release": {"image": self._release},
                "pullSecret": {"name": "pull"},
                "platform": {"type": "KubeVirt", "kubevirt": {}},
                "networking": {
                    "networkType": "OVNKubernetes",
                    "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
                    "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
                },
                "etcd": {
                    "managementType": "Managed",
                    "managed": {"storage": {"type": "PersistentVolume", "persistentVolume": {"size": "1Gi"}}},
                },
                "services": services,
                "controllerAvailabilityPolicy": "SingleReplica",
            },
        }

    async def create(self, names: list[str], timeout: float) -> dict[str, float]:
        """Create all at once; seconds until Available of those that got there."""
        took: dict[str, float] = {}
        begun: dict[str, float] = {}
        live = await self._client.list_with_version(k.HOSTEDCLUSTERS, NAMESPACE)

        async def follow() -> None:
            version: str | None = live[1]
            while True:
                async for _, obj in self._client.watch(k.HOSTEDCLUSTERS, NAMESPACE, resource_version=version):
                    name = obj["metadata"].get("name")
                    version = obj["metadata"].get("resourceVersion", version)
                    conditions = (obj.get("status") or {}).get("conditions") or []
                    up = any(c["type"] == "Available" and c["status"] == "True" for c in conditions)
                    if up and name in begun and name not in took:
                        took[name] = time.monotonic() - begun[name]
                        if len(took) == len(names):
                            return

        following = asyncio.create_task(follow())
        for name in names:
            begun[name] = time.monotonic()
            await self._client.create(self.manifest(name))
        try:
            async with asyncio.timeout(timeout):
                await following
        except TimeoutError:
            following.cancel()
        return took

    async def memory(self, name: str) -> dict[str, float]:
        pods = await self._client.list(k.PODS, f"{NAMESPACE}-{name}")
        return await asyncio.to_thread(pod_memory, [p["metadata"]["uid"] for p in pods])

    async def helpers(self) -> list[str]:
        """What works for all clusters: how much each held at most, and its limit."""
        told = []
        for ns in ("hypershift", "openshift-ingress"):
            for pod in await self._client.list(k.PODS, ns):
                limits = [c.get("resources", {}).get("limits", {}).get("memory") for c in pod["spec"]["containers"]]
                peak = await asyncio.to_thread(pod_peak, pod["metadata"]["uid"])
                told.append(
                    f"{pod['metadata']['name']} {peak:.0f} MB of {'+'.join(limit or 'any' for limit in limits)}"
                )
        return told

    async def objects(self, name: str) -> int:
        """How many objects the operator made for one cluster, in its namespace and beside it."""
        kinds = [k.SECRETS, k.CONFIGMAPS, k.SERVICES, k.DEPLOYMENTS, k.STATEFULSETS, k.PDBS, k.NETWORKPOLICIES]
        kinds += [k.HOSTEDCONTROLPLANES, k.ROUTES, k.CAPI_CLUSTERS, k.KUBEVIRTCLUSTERS, k.CONTROLPLANECOMPONENTS]
        kinds += [k.ROLEBINDINGS, k.RESOURCEQUOTAS]
        ns = f"{NAMESPACE}-{name}"
        label = f"hypershift.openshift.io/hosted-control-plane={ns}"
        total = 1  # the namespace
        for kind in kinds:
            total += len(await self._client.list(kind, ns, labels=label))
        return total + len(await self._client.list(k.SECRETS, NAMESPACE, labels=label))

    async def writes(self) -> float:
        """Writes of the operator so far, as its metrics say."""
        pods = await self._client.list(k.PODS, "hypershift", labels="name=operator")
        for pod in pods:
            path = f"/api/v1/namespaces/hypershift/pods/{pod['metadata']['name']}:9000/proxy/metrics"
            text = await self._client.raw_text("GET", path)
            lines = [line for line in text.splitlines() if line.startswith("hcp_api_requests_total{")]
            return sum(
                float(line.rpartition(" ")[2])
                for line in lines
                if any(f'verb="{verb}"' in line for verb in WRITES) and 'resource="leases' not in line
            )
        return 0.0

    async def remove(self) -> None:
        for live in await self._client.list(k.HOSTEDCLUSTERS, NAMESPACE):
            await self._client.delete(k.HOSTEDCLUSTERS, live["metadata"]["name"], NAMESPACE, missing_ok=True)
        while await self._client.list(k.HOSTEDCLUSTERS, NAMESPACE):
            await asyncio.sleep(1)


def spread(values: Iterable[float]) -> str:
    ordered = sorted(values)
    if not ordered:
        return "none"
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    return f"p50 {statistics.median(ordered):.1f} s, p99 {p99:.1f} s, max {ordered[-1]:.1f} s"


def say(text: str) -> None:
    print(text, flush=True)


async def measure(options: argparse.Namespace) -> None:
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    async with Client(load_config(options.kubeconfig)) as client:
        fleet = Fleet(client, options.release)
        await fleet.prepare()
        try:
            if options.runs:
                await _single(fleet, options)
                await _memory(fleet, options)
            await _crowd(fleet, options)
        finally:
            if not options.keep:
                await fleet.remove()


async def _single(fleet: Fleet, options: argparse.Namespace) -> None:
    """In pairs, one after the other: other work on the machine then weighs on both sides of each ratio."""
    await fleet.create(["warm"], 300)  # pulls images
    await fleet.remove()
    bares, hosted = [], []
    for number in range(options.runs):
        bare = Bare(options.bin_dir)
        try:
            bares.append(await asyncio.to_thread(bare.start))
        finally:
            bare.stop()
        took = await fleet.create([f"one-{number}"], 300)
        hosted += list(took.values()) or [float("inf")]
        await fleet.remove()
        say(f"  bare etcd + kube-apiserver to /readyz {bares[-1]:.2f} s, create to Available {hosted[-1]:.2f} s")
    ratio = statistics.median(h / b for h, b in zip(hosted, bares, strict=True))
    say(
        f"create to Available, one cluster: median {statistics.median(hosted):.2f} s, "
        f"bare {statistics.median(bares):.2f} s, median ratio {ratio:.2f} (hold 4, aim 2.5)"
    )


async def _memory(fleet: Fleet, options: argparse.Namespace) -> None:
    bare = Bare(options.bin_dir)
    try:
        bare.start(whole=True)
        await fleet.create(["idle"], 300)
        await asyncio.sleep(options.idle)
        plain, hosted = bare.memory(), await fleet.memory("idle")
    finally:
        bare.stop()
    total, ours = sum(plain.values()), sum(hosted.get(p, 0.0) for p in PARTS)
    say(
        f"bare, idle {options.idle:.0f} s:   "
        + ", ".join(f"{n} {m:.0f}" for n, m in plain.items())
        + f" MB = {total:.0f}"
    )
    say("hosted, idle the same: " + ", ".join(f"{n} {hosted.get(n, 0):.0f}" for n in PARTS) + f" MB = {ours:.0f}")
    say(f"memory ratio {ours / total:.2f} (hold 1.15); apart: konnectivity {hosted.get('proxy-server', 0):.0f} MB")
    await fleet.remove()


async def _crowd(fleet: Fleet, options: argparse.Namespace) -> None:
    if not options.crowd:
        return
    bare = await pairs_at_once(options.crowd, options.bin_dir)
    say(f"{options.crowd} bare pairs at once: {spread(bare)}")
    before = await fleet.writes()
    names = [f"crowd-{n}" for n in range(options.crowd)]
    took = await fleet.create(names, options.patience)
    say(f"{options.crowd} clusters at once: {len(took)} Available, {spread(took.values())}")
    if len(took) == len(names):
        say(f"  the last of them against the last bare pair: {max(took.values()) / max(bare):.2f} x (hold 2 for ten)")
    await asyncio.sleep(15)
    made = await fleet.objects(names[0])
    writes = (await fleet.writes() - before) / len(names)
    say(f"objects per cluster {made}, API writes per cluster {writes:.0f} = {writes / made:.2f} x (hold 1.5)")
    while len(names) < options.most:
        more = [f"crowd-{n}" for n in range(len(names), min(len(names) + 10, options.most))]
        came = await fleet.create(more, options.patience)
        names += more
        took |= came
        say(f"{len(names)} clusters: {len(took)} Available, the last {len(more)}: {spread(came.values())}")
        if len(came) < len(more):
            break
    await asyncio.sleep(options.idle)
    each = [sum((await fleet.memory(n)).values()) for n in names]
    say(f"memory of one control plane, all processes, {len(names)} running: median {statistics.median(each):.0f} MB")
    say("at most held by what works for all of them: " + ", ".join(await fleet.helpers()))
    available = Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]
    say(f"memory left on the machine: {int(available) / 1e6:.1f} GB")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", default=None)
    parser.add_argument("--release", required=True)
    parser.add_argument("--bin-dir", type=Path, default=None, help="etcd and Kubernetes binaries for the yardstick")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--crowd", type=int, default=20)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--patience", type=float, default=600.0)
    parser.add_argument("--keep", action="store_true", help="leave the clusters running")
    asyncio.run(measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
