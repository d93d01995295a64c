"""What the engine itself costs: comparing, queueing, caching, and one client per guest.

No API server is needed: `python bench/engine.py`. Times are the best of several runs; they are printed beside a
yardstick (parsing one Deployment from JSON) from the same run, so that figures of two machines can be compared.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from hcp import pki
from hcp.kube import Client, ClusterConfig
from hcp.runtime import Controller, apply, compare
from hcp.runtime.store import Store

PASSES = 20_000
OBJECTS = 5_000
CLIENTS = 100


def deployment() -> dict[str, Any]:
    """A Deployment about the size of a kube-apiserver's."""
    container = {
        "name": "api",
        "image": "registry.example.com/api@sha256:" + "0" * 64,
        "args": [f"--flag-{n}=value-{n}" for n in range(60)],
        "env": [{"name": f"E{n}", "value": str(n)} for n in range(5)],
        "ports": [{"containerPort": 6443, "name": "https", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
        "volumeMounts": [{"name": f"v{n}", "mountPath": f"/v{n}"} for n in range(15)],
    }
    volumes = [{"name": f"v{n}", "secret": {"secretName": f"s{n}", "defaultMode": 416}} for n in range(15)]
    spec = {"replicas": 1, "template": {"spec": {"containers": [container], "volumes": volumes}}}
    meta = {"name": "api", "namespace": "n", "labels": {"app": "api"}, "resourceVersion": "1", "uid": "u"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def owned(value: Any, key: str = "") -> dict[str, Any]:
    """The record of applied fields that a server would keep for this value."""
    if isinstance(value, dict):
        return {f"f:{k}": owned(v, k) for k, v in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        by = {"ports": ("containerPort", "protocol"), "volumeMounts": ("mountPath",)}.get(key, ("name",))
        return {"k:" + json.dumps({b: v[b] for b in by}): {".": {}, **owned(v)} for v in value}
    return {}


def live_deployment() -> dict[str, Any]:
    live = deployment()
    fields = owned({"metadata": {"labels": live["metadata"]["labels"]}, "spec": live["spec"]})
    live["metadata"]["managedFields"] = [{"manager": "hcp", "operation": "Apply", "fieldsV1": fields}]
    return live


def best(run: Callable[[], object], times: int, repeat: int = 5) -> float:
    """Seconds per call."""
    found = []
    for _ in range(repeat):
        started = time.perf_counter()
        for _ in range(times):
            run()
        found.append((time.perf_counter() - started) / times)
    return min(found)


async def controller_overhead() -> float:
    """Seconds per empty pass, from enqueue to done."""
    left = PASSES

    async def reconcile(_: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            controller.stop()

    controller = Controller("bench", reconcile, workers=8)
    started = time.perf_counter()
    for n in range(PASSES):
        controller.enqueue(f"ns/{n}")
    await controller.run()
    return (time.perf_counter() - started) / PASSES


def memory_of(make: Callable[[], object], count: int) -> float:
    """Bytes per thing made, all of them kept."""
    tracemalloc.start()
    kept = [make() for _ in range(count)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(kept)


def store_memory() -> float:
    raw = json.dumps(live_deployment())
    store = Store()
    names = iter(range(OBJECTS))

    def put() -> None:
        obj = json.loads(raw)
        obj["metadata"]["name"] = f"d{next(names)}"
        store.put(obj)

    return memory_of(put, OBJECTS)


async def client_memory() -> float:
    ca = pki.new_ca("bench")
    leaf = pki.issue(ca, "admin", usage="client")
    config = ClusterConfig.from_kubeconfig_dict(
        pki.kubeconfig("https://127.0.0.1:1", ca.cert_pem, leaf.cert_pem, leaf.key_pem)
    )
    return await asyncio.to_thread(memory_of, lambda: Client(config), CLIENTS)


def main() -> None:
    desired, live = deployment(), live_deployment()
    if not compare.is_applied(desired, live, "hcp", None):
        raise SystemExit("the benchmark's own object does not compare as applied")
    raw = json.dumps(live)
    yardstick = best(lambda: json.loads(raw), 500)
    rows = [
        ("yardstick: parse one Deployment", yardstick),
        ("is it already applied?", best(lambda: compare.is_applied(desired, live, "hcp", None), 500)),
        ("is it what it was last time?", best(lambda: apply._digest(desired), 500)),
        ("copy it (what a cache that copies would pay)", best(lambda: copy.deepcopy(live), 100)),
        ("one empty pass of a controller", min(asyncio.run(controller_overhead()) for _ in range(3))),
    ]
    for name, seconds in rows:
        print(f"{name:48} {seconds * 1e6:9.1f} us {seconds / yardstick:8.2f} x")
    print(f"{'memory per Deployment in a cache':48} {store_memory() / 1024:9.1f} KiB")
    print(f"{'memory per idle client of a guest':48} {asyncio.run(client_memory()) / 1024:9.1f} KiB")


if __name__ == "__main__":
    main()
