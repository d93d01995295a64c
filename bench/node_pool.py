"""How long a node pool takes, against the same VMs booted at once by hand in QEMU.

    sudo .venv/bin/python bench/node_pool.py --kubeconfig FILE --release IMAGE [--only create,scale,replace,cache]

The management cluster must run with KubeVirt, CDI and the operator (`hcp local up --profile kubevirt --release`,
`hcp install`). Measured: create → both nodes Ready (held at 1.5 times by hand, disk copy included), scale 2 → 3,
replacing 2, three VMs with and without boot image cache, and the memory a VM costs above its guest's.

By hand and by node pool take turns, as the machine's speed may change from minute to minute: each pool is measured
against the mean of by hand before and after it, and what is held is the median. The first is told but not held: on a
new cluster it pulls images, which by hand are files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.by_hand import by_hand, ready

from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube.resources import NODEPOOLS, NODES, PODS, VMIS
from hcp.local.status.memory import pss_bytes
from hcp.runtime import is_true

NAMESPACE, CLUSTER = "bench-nodes", "bench"
HOSTED = f"{NAMESPACE}-{CLUSTER}"
HOLD = 1.5
MEMORY = 2048
HCP = Path(sys.executable).with_name("hcp")


class Bench:
    """One hosted cluster and its pools."""

    def __init__(self, client: Client, options: argparse.Namespace) -> None:
        self.client = client
        self.options = options
        self.results: dict[str, float] = {}
        self.guest: Client | None = None

    async def hcp(self, *words: str) -> None:
        process = await asyncio.create_subprocess_exec(
            str(HCP), *words, f"--kubeconfig={self.options.kubeconfig}", stdout=subprocess.DEVNULL
        )
        if await process.wait():
            raise SystemExit(f"hcp {' '.join(words)} failed")

    def vm_flags(self) -> list[str]:
        return [f"--memory={MEMORY}Mi", "--cores=1", "--root-volume-size=16"]

    async def cluster(self) -> None:
        secret = Path(tempfile.gettempdir()) / "bench-pull-secret.json"
        secret.write_text('{"auths": {}}')
        await self.hcp(
            *("create", "cluster", "kubevirt", f"--name={CLUSTER}", f"--namespace={NAMESPACE}"),
            *(f"--release-image={self.options.release}", f"--pull-secret={secret}", "--node-pool-replicas=0"),
            *("--control-plane-availability-policy=SingleReplica", *self.vm_flags()),
        )
        await self.hcp("wait", "cluster", CLUSTER, f"--namespace={NAMESPACE}", "--control-plane", "--timeout=10m")

    async def pool(self, name: str, replicas: int, *flags: str) -> None:
        await self.hcp(
            *("create", "nodepool", "kubevirt", f"--name={name}", f"--cluster-name={CLUSTER}"),
            *(f"--namespace={NAMESPACE}", f"--replicas={replicas}", *self.vm_flags(), *flags),
        )

    async def scale(self, name: str, replicas: int) -> None:
        await self.client.patch(NODEPOOLS, name, NAMESPACE, {"spec": {"replicas": replicas}})

    async def timed(self, what: str, done: Callable[[dict[str, Any]], bool], name: str, began: float) -> float:
        while not done(await self.client.get(NODEPOOLS, name, NAMESPACE)):
            await asyncio.sleep(0.5)
        seconds = self.results[what] = time.monotonic() - began
        print(f"{what:<40} {seconds:8.1f} s", flush=True)
        return seconds

    async def gone(self) -> None:
        """Until nothing of the pool's VMs is left."""
        while await self.client.list(VMIS, HOSTED) or await self.nodes():
            await asyncio.sleep(0.5)

    async def nodes(self) -> list[dict[str, Any]]:
        """The hosted cluster's own view, which is what counts by hand too."""
        if self.guest is None:
            words = ("create", "kubeconfig", f"--name={CLUSTER}", f"--namespace={NAMESPACE}")
            command = [str(HCP), *words, f"--kubeconfig={self.options.kubeconfig}"]
            text = subprocess.run(command, check=True, capture_output=True).stdout
            self.guest = Client(untrusted_kubeconfig.load(text))
        return await self.guest.list(NODES)

    async def yardstick(self) -> float:
        with tempfile.TemporaryDirectory() as folder:
            seconds = await by_hand(2, Path(folder), MEMORY)
        print(f"{'2 VMs by hand, disk copy included':<40} {seconds:8.1f} s", flush=True)
        return seconds

    async def turns(self) -> float:
        """By hand and by node pool, in turns; gives the median ratio."""
        ratios = []
        before = await self.yardstick()
        await self.cluster()
        for number in range(self.options.runs):
            began = time.monotonic()
            await self.scale(CLUSTER, 2)
            while sum(ready(node) for node in await self.nodes()) < 2:
                await asyncio.sleep(0.5)
            seconds = time.monotonic() - began
            print(f"{'node pool of 2, both nodes Ready':<40} {seconds:8.1f} s", flush=True)
            await self.timed("and the pool says so", _available(2), CLUSTER, began)
            await self.settled()
            began = time.monotonic()
            await self.scale(CLUSTER, 0)
            await self.gone()
            print(f"{'2 to 0, VMs gone':<40} {time.monotonic() - began:8.1f} s", flush=True)
            after = await self.yardstick()
            ratios.append(seconds / statistics.mean((before, after)))
            print(f"ratio {ratios[-1]:.2f}", flush=True)
            self.results |= {f"node pool {number}": seconds, f"by hand {number}": (before + after) / 2}
            before = after
        return statistics.median(ratios[1:] or ratios)

    async def two(self) -> None:
        """Two nodes and nothing under way, whatever was measured before."""
        began = time.monotonic()
        await self.scale(CLUSTER, 2)
        await self.timed("2 again", _available(2), CLUSTER, began)
        await self.nodes()
        await self.settled()

    async def settled(self) -> None:
        """Until every pod of the hosted cluster runs: VMs are not taken away while they start."""
        assert self.guest is not None
        while not all(running(pod) for pod in await self.guest.list(PODS)):
            await asyncio.sleep(0.5)

    async def overhead(self) -> None:
        """Memory of a VM's processes above what its guest was given, averaged over all VMs."""
        pods = [p for p in await self.client.list(PODS, HOSTED) if p["metadata"]["labels"].get("kubevirt.io")]
        names = {vm["metadata"]["name"] for vm in await self.client.list(VMIS, HOSTED)}
        total = 0
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_bytes().decode(errors="replace")
            except OSError:
                continue
            if any(name in text for name in names) and ("qemu" in text or "virt-launcher" in text):
                total += pss_bytes(int(path.parent.name))
        if pods:
            extra = total / len(pods) / 2**20 - MEMORY
            self.results["memory per VM above the guest's (MiB)"] = extra
            print(f"memory per VM above the guest's          {extra:8.0f} MiB (guest pages not touched count as saved)")


def running(pod: dict[str, Any]) -> bool:
    """Whether its containers are ready, or it is going away."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready") or bool(
        pod["metadata"].get("deletionTimestamp")
    )


def _available(count: int) -> Callable[[dict[str, Any]], bool]:
    return lambda pool: int((pool.get("status") or {}).get("replicas") or 0) == count


def _replaced(pool: dict[str, Any]) -> bool:
    conditions = {c["type"]: c["status"] for c in (pool.get("status") or {}).get("conditions") or []}
    return conditions.get("UpdatingPlatformMachineTemplate") == "False" and _available(2)(pool)


async def run(options: argparse.Namespace) -> int:
    wanted = set(options.only.split(","))
    failed = False
    async with Client(load_config(options.kubeconfig)) as client:
        bench = Bench(client, options)
        if "create" in wanted:
            ratio = bench.results["ratio"] = await bench.turns()
            failed = ratio > HOLD
            print(f"median {ratio:.2f} (hold {HOLD}){'  MISSED' if failed else ''}")
        else:
            await bench.cluster()
        if "scale" in wanted:
            await bench.two()
            await bench.overhead()
            began = time.monotonic()
            await bench.scale(CLUSTER, 3)
            await bench.timed("scale 2 to 3", _available(3), CLUSTER, began)
            await bench.settled()
            await bench.scale(CLUSTER, 2)
            await bench.timed("scale 3 to 2", _available(2), CLUSTER, time.monotonic())
        if "replace" in wanted:
            await bench.two()
            patch = '[{"op": "add", "path": "/spec/template/metadata/annotations/bench", "value": "x"}]'
            note = {"hypershift.openshift.io/kubevirt-vm-jsonpatch": patch}
            began = time.monotonic()
            await client.patch(NODEPOOLS, CLUSTER, NAMESPACE, {"metadata": {"annotations": note}})
            await asyncio.sleep(5)
            await bench.timed("replace of 2", _replaced, CLUSTER, began)
        await bench.scale(CLUSTER, 0)
        await bench.gone()
        if "cache" in wanted:
            for name, flags in (("plain", ()), ("cached", ("--root-volume-cache-strategy=PVC",))):
                began = time.monotonic()
                await bench.pool(name, 3, *flags)
                await bench.timed(f"3 VMs, {name}", _available(3), name, began)
                await bench.scale(name, 0)
                await bench.gone()
        if bench.guest is not None:
            await bench.guest.close()
        if not options.keep:
            await bench.hcp("destroy", "cluster", "kubevirt", f"--name={CLUSTER}", f"--namespace={NAMESPACE}")
    if options.json:
        Path(options.json).write_text(json.dumps(bench.results, indent=2))
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--only", default="create,scale,replace,cache")
    parser.add_argument("--runs", type=int, default=4, help="how often a pool is made; by hand once more")
    parser.add_argument("--keep", action="store_true", help="leave the hosted cluster")
    parser.add_argument("--json")
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
