"""Waiting until what was applied really works, and saying what is missing when it does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from hcp.api.manifests import Object
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import ApiError, NotFound
from hcp.kube.resources import NODES, PODS, resource_for
from hcp.local.state.nodes import Node
from hcp.local.state.spec import Spec
from hcp.runtime.workloads import rolled_out

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
WORKER_LABEL = "node-role.kubernetes.io/worker"
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
_PERIOD = 0.25
_PATIENCE = 300.0
_RESTART_PATIENCE = 120.0


async def until(
    check: Callable[[], Awaitable[bool]], patience: float, failure: Callable[[], Awaitable[HcpError]]
) -> None:
    """Asks again and again; raises what `failure` says when patience ends."""
    end = time.monotonic() + patience
    while not await check():
        if time.monotonic() > end:
            raise await failure()
        await asyncio.sleep(_PERIOD)


async def label_node(client: Client, spec: Spec) -> None:
    """The kubelet may not give itself this label, and virt-operator only runs where it is."""

    async def registered() -> bool:
        try:
            await client.patch(NODES, spec.node_name, None, {"metadata": {"labels": {CONTROL_PLANE_LABEL: ""}}})
        except NotFound:
            return False
        return True

    async def failure() -> HcpError:
        return HcpError(
            "The kubelet did not register its node",
            hint=f"hcp local logs kubelet --name {spec.name} says why; running up again continues",
        )

    await until(registered, 60.0, failure)


async def node_ready(client: Client, node: Node) -> None:
    seen: dict[str, Any] = {}

    async def ready() -> bool:
        seen.update(await client.get(NODES, node.name))
        return is_node_ready(seen)

    async def failure() -> HcpError:
        conditions = seen.get("status", {}).get("conditions") or []
        said = next((item.get("message", "") for item in conditions if item["type"] == "Ready"), "")
        return HcpError(
            f"Node {node.name} did not become Ready",
            cause=said or None,
            hint=f"hcp local logs kubelet --name {node.spec.name} --node {node.name} says more",
        )

    await until(ready, 120.0, failure)


def is_node_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


async def definitions_served(client: Client, wanted: list[Object]) -> None:
    """A kind can be used a moment after its definition was accepted."""

    async def served() -> bool:
        for obj in wanted:
            live = await client.get(resource_for(obj), obj["metadata"]["name"])
            conditions = live.get("status", {}).get("conditions") or []
            if not any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
                return False
        return True

    async def failure() -> HcpError:
        return HcpError("The API server does not serve a kind although its definition was accepted")

    if wanted:
        await until(served, 60.0, failure)


async def wait_ready(client: Client, wanted: list[Object], say: Callable[[str], None]) -> None:
    """Until every workload among the objects is ready."""
    await asyncio.gather(*(_workload(client, obj, say) for obj in wanted if obj["kind"] in WORKLOADS))


async def _workload(client: Client, obj: Object, say: Callable[[str], None]) -> None:
    name, ns = obj["metadata"]["name"], obj["metadata"]["namespace"]

    async def ready() -> bool:
        try:
            return rolled_out(await client.get(resource_for(obj), name, ns))
        except NotFound:
            return False

    async def failure() -> HcpError:
        return HcpError(
            f"{obj['kind']} {ns}/{name} did not become ready",
            cause=await pod_trouble(client, ns, obj["spec"]["selector"]["matchLabels"]),
            hint="Running up again continues.",
        )

    await until(ready, _PATIENCE, failure)
    say(f"  {name} is ready")


async def pod_trouble(client: Client, ns: str, labels: dict[str, str]) -> str | None:
    """What keeps the pods of a workload from running, in the words of the kubelet or the scheduler."""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    try:
        pods = await client.list(PODS, ns, labels=selector or None)
    except ApiError as error:
        return str(error)
    return trouble_of(pods)


async def namespace_trouble(client: Client, ns: str) -> str | None:
    """The same for all pods of a namespace."""
    return await pod_trouble(client, ns, {})


def trouble_of(pods: list[Object]) -> str | None:
    for pod in pods:
        status = pod.get("status", {})
        for container in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
            state = container.get("state", {})
            waiting = state.get("waiting") or container.get("lastState", {}).get("terminated") or {}
            if waiting.get("reason"):
                return f"{waiting['reason']}: {waiting.get('message', '')}"[:400]
        for condition in status.get("conditions") or ():
            if condition["status"] != "True" and condition.get("message"):
                return str(condition["message"])[:400]
    return "no pod exists" if not pods else None


def is_stale(pod: Object, began: float) -> bool:
    """Whether a pod's status still tells of a container from before the node was started."""
    for container in pod.get("status", {}).get("containerStatuses") or ():
        started = container.get("state", {}).get("running", {}).get("startedAt")
        # Written by the kubelet without fractions of a second.
        if started and datetime.fromisoformat(started).timestamp() < began - 1:
            return True
    return False


async def pods_restarted(client: Client, spec: Spec, began: float) -> bool:
    """After the first node was started anew the API server still shows its old pods as running: waits for new ones.

    Says whether all of them came back; one that cannot is its owner's business, not ours.
    """
    end = time.monotonic() + _RESTART_PATIENCE
    while any(is_stale(pod, began) for pod in await client.list(PODS) if pod["spec"].get("nodeName") == spec.node_name):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_PERIOD)
    return True


async def all_ready(client: Client, spec: Spec, wanted: list[Object]) -> bool:
    """A quick look without waiting."""
    try:
        found = await asyncio.gather(
            client.get(NODES, spec.node_name),
            *(
                client.get(resource_for(obj), obj["metadata"]["name"], obj["metadata"]["namespace"])
                for obj in wanted
                if obj["kind"] in WORKLOADS
            ),
        )
    except NotFound:
        return False
    return is_node_ready(found[0]) and all(rolled_out(obj) for obj in found[1:])
