"""How fast and how small hosted control planes are, against the bare processes on the same machine.

    python bench/control_plane.py --kubeconfig FILE --release IMAGE [--crowd 20] [--most 40] [--idle 60]

Needs a management cluster on this machine with the operator installed (`hcp local up`). Measures, in one run:

1. a bare etcd + kube-apiserver until /readyz, several times, and one hosted cluster from creation to Available;
2. memory (PSS) of the four bare processes and of the four of an idle hosted cluster, after the same idle time;
3. a crowd of hosted clusters created at once: p50 and p99 until Available, memory each, API writes per cluster;
4. more of them, until the number asked for or until they no longer come up.

Every figure is printed with the yardstick it is measured against; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hcp import payload, pki
from hcp.kube import Client, load_config
from hcp.kube import resources as k

Object = dict[str, Any]
NAMESPACE = "bench"
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
WRITES = ("create", "update", "patch", "delete")


def binary(name: str, given: Path | None) -> Path:
    if given is not None:
        return given / name
    component = "etcd" if name == "etcd" else "kubernetes-1.36"
    return payload.ensure([component])[component] / "bin" / name


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Bare:
    """The yardstick: the same binaries with TLS, straight from the shell."""

    def __init__(self, bin_dir: Path | None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hcp-bench-"))
        self._bin = bin_dir
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._port = free_port()

    def start(self, *, whole: bool = False) -> float:
        """Start etcd and kube-apiserver (and the two others); seconds until /readyz."""
        files = self._files()
        for name in PARTS if whole else PARTS[:2]:
            self._copy(name)
        etcd_port, peer = free_port(), free_port()
        begun = time.monotonic()
        client_url, peer_url = f"http://127.0.0.1:{etcd_port}", f"http://127.0.0.1:{peer}"
        self._run(
            "etcd",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client_url}",
            f"--advertise-client-urls={client_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
        )
        self._run(
            "kube-apiserver",
            f"--etcd-servers={client_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={files / 'server.crt'}",
            f"--tls-private-key-file={files / 'server.key'}",
            f"--client-ca-file={files / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files / 'sa.pub'}",
            f"--service-account-signing-key-file={files / 'sa.key'}",
            "--service-cluster-ip-range=172.31.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--shutdown-delay-duration=0s",
        )
        self._wait_ready(files)
        seconds = time.monotonic() - begun
        if whole:
            for name in PARTS[2:]:
                self._run(name, f"--kubeconfig={files / 'kubeconfig'}", f"--secure-port={free_port()}")
        return seconds

    def stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.kill()
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)

    def memory(self) -> dict[str, float]:
        return {name: pss(process.pid) for name, process in self._processes.items()}

    def _run(self, name: str, *args: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            command = [str(self._copy(name)), *args]
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)

    def _copy(self, name: str) -> Path:
        """A file of its own: pages shared with the management cluster's processes would make the yardstick small."""
        target = self.directory / f"bin-{name}"
        if not target.exists():
            shutil.copy(binary(name, self._bin), target)
        return target

    def _wait_ready(self, files: Path) -> None:
        context = ssl.create_default_context(cafile=str(files / "ca.crt"))
        while True:
            try:
                with urllib.request.urlopen(f"https://127.0.0.1:{self._port}/readyz", context=context, timeout=5):
                    return
            except OSError:
                time.sleep(0.02)

    def _files(self) -> Path:
        ca = pki.new_ca("bench")
        server = pki.issue(ca, "kube-apiserver", dns=["localhost"], ips=["127.0.0.1"])
        admin = pki.issue(ca, "admin", orgs=["system:masters"], usage="client")
        signing = pki.new_signing_key()
        kubeconfig = pki.kubeconfig(f"https://127.0.0.1:{self._port}", ca.cert_pem, admin.cert_pem, admin.key_pem)
        content = {
            "ca.crt": ca.cert_pem,
            "server.crt": server.cert_pem,
            "server.key": server.key_pem,
            "sa.key": signing,
            "sa.pub": pki.public_key(signing),
            "kubeconfig": pki.kubeconfig_yaml(kubeconfig),
        }
        for name, data in content.items():
            (self.directory / name).write_bytes(data)
        return self.directory


def pss(pid: int) -> float:
    """Proportional set size in MB: shared pages of one binary are counted once over all who map them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in text.splitlines() if line.startswith("Pss:")), 0.0)


def pod_memory(uids: Iterable[str]) -> dict[str, float]:
    """PSS by program of all processes of these pods, found by their cgroup."""
    marks = {form for uid in uids for form in (uid, uid.replace("-", "_"))}
    found: dict[str, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            cgroup = (entry / "cgroup").read_text()
            command = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
        except OSError:
            continue
        if any(mark in cgroup for mark in marks):
            name = Path(command).name or "?"
            found[name] = found.get(name, 0.0) + pss(int(entry.name))
    return found


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

    async def objects(self, name: str) -> int:
        """How many objects the operator made for one cluster, in its namespace and beside it."""
        kinds = [k.SECRETS, k.CONFIGMAPS, k.SERVICES, k.DEPLOYMENTS, k.STATEFULSETS, k.PDBS, k.NETWORKPOLICIES]
        kinds += [k.HOSTEDCONTROLPLANES, k.ROUTES, k.CAPI_CLUSTERS, k.KUBEVIRTCLUSTERS]
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
    before = await fleet.writes()
    names = [f"crowd-{n}" for n in range(options.crowd)]
    took = await fleet.create(names, options.patience)
    say(f"{options.crowd} clusters at once: {len(took)} Available, {spread(took.values())}")
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
