"""How long a pod without any volume takes in a hosted cluster: created → Ready.

    .venv/bin/python bench/guest_pods.py --kubeconfig HOSTED-CLUSTER-FILE [--node NAME] [--rounds 7]

The image is that of a pod which runs on the node already, so nothing is pulled.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.follow import follow
from hcp.runtime.conditions import is_true

NS, NAME = "default", "bench-pod"
WAITS = ["sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"]
# What a pod that was deleted leaves to do is over by then.
PAUSE = 8.0


async def until(client: Client, judge: Callable[[Any], bool]) -> float:
    began = time.monotonic()
    async with asyncio.timeout(300), aclosing(follow(client, k.PODS, NAME, NS)) as changes:
        async for one in changes:
            if judge(one):
                break
    return time.monotonic() - began


def ready(pod: Any) -> bool:
    return is_true((pod or {}).get("status", {}).get("conditions"), "Ready")


def _has_a_shell(pod: Any) -> bool:
    return bool(pod["metadata"]["name"].startswith(("kubevirt-csi-node", "kube-proxy")))


async def run(options: argparse.Namespace) -> None:
    async with Client(load_config(options.kubeconfig)) as client:
        node = options.node or sorted(one["metadata"]["name"] for one in await client.list(k.NODES))[0]
        there = [pod for pod in await client.list(k.PODS, "kube-system") if pod["spec"].get("nodeName") == node]
        image = next(pod["spec"]["containers"][0]["image"] for pod in there if _has_a_shell(pod))
        container: dict[str, Any] = {"name": "one", "image": image, "command": WAITS}
        spec = {
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": options.token,
            "nodeSelector": {"kubernetes.io/hostname": node},
        }
        figures: list[float] = []
        for _ in range(options.rounds):
            await client.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "namespace": NS}, "spec": spec}
            )
            figures.append(await until(client, ready))
            await client.delete(k.PODS, NAME, NS)
            await asyncio.sleep(PAUSE)
        told = ", ".join(f"{value:.1f}" for value in figures)
        print(f"created → Ready: median {statistics.median(figures):.2f} s ({told})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--node", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--token", action="store_true", help="with the account's token, as most pods have it")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
