"""A hosted cluster's surroundings on a real API server, for tests of what the operator does with node pools."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support import crds as crds_support
from tests.support.definitions import CLUSTER_API, VIRTUALIZATION, real
from tests.support.eventually import eventually
from tests.support.passes import a_pass

from hcp.api.names import LABEL_CONTROL_PLANE_NAMESPACE
from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.controlplane.namespace import namespace as own_namespace
from hcp.guest.views import Views
from hcp.hostedcluster.translate import params
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kube.errors import NotFound
from hcp.nodepool.watches import Watches
from hcp.operator import wiring
from hcp.runtime import Controller, EventRecorder
from hcp.runtime.context import PUBLISHED_KUBECONFIG, Guests, Informers, OperatorContext

Object = dict[str, Any]
T = TypeVar("T")


async def prepare(client: Client) -> None:
    """All kinds, and the operator's namespace."""
    await crds_support.install(client)
    await crds_support.install(client, real(r.ROUTES, *CLUSTER_API, *VIRTUALIZATION))
    await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hypershift"}})


@dataclass(frozen=True)
class Facts:
    """A release as a node pool sees it."""

    version: str = "1.36.3"
    components: Mapping[str, str] = field(
        default_factory=lambda: {"pause": "r.test/pause@sha256:1", "haproxy": "r.test/haproxy@sha256:2"}
    )
    boot_disk: str | None = "r.test/disk@sha256:3"


SCALES = {**Facts().components, "cluster-autoscaler": "r.test/cluster-autoscaler@sha256:5"}
RELEASES = {
    "r.test/release:1.36.3": Facts(),
    "r.test/release:1.36.3-autoscaling": Facts(components=SCALES),
    "r.test/release:1.36.4": Facts("1.36.4", boot_disk="r.test/disk@sha256:4"),
    "r.test/release:1.37.0": Facts("1.37.0"),
}


async def release(_cluster: Mapping[str, Any], image: str) -> Facts:
    return RELEASES[image]


def data(**values: str) -> dict[str, str]:
    return {
        key.replace("__", ".").replace("_", "-"): base64.b64encode(v.encode()).decode() for key, v in values.items()
    }


async def hosted_cluster(
    client: Client,
    namespace: str,
    kubeconfig: Path,
    *,
    credentials: Object | None = None,
    platform: Object | None = None,
    plane: bool = True,
) -> Object:
    """A HostedCluster whose control plane answers: here its API is the test's own server."""
    hosted = f"{namespace}-demo"
    wanted = crds_support.changed(
        crds_support.rendered_cluster(namespace), "spec.release.image", "r.test/release:1.36.3"
    )
    if platform is not None:
        wanted["spec"]["platform"] = platform
    made = await client.create(
        crds_support.changed(wanted, "spec.platform.kubevirt.credentials", credentials) if credentials else wanted
    )
    ready = {"type": "KubeAPIServerAvailable", "status": "True", "reason": "AsExpected", "message": ""}
    status = {
        "ignitionEndpoint": "ignition.example.com",
        "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    await client.patch(r.HOSTEDCLUSTERS, "demo", namespace, {"status": status}, subresource="status")
    await client.create(own_namespace(params(made)))
    for item in (
        _secret("demo-pull-secret", namespace, data(__dockerconfigjson='{"auths":{}}')),
        _secret("bootstrap-kubeconfig", hosted, data(kubeconfig="kind: Config"), of=hosted),
        _secret(PUBLISHED_KUBECONFIG, hosted, data(kubeconfig=kubeconfig.read_text()), of=hosted),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata("kubelet-client-ca", hosted, of=hosted),
            "data": {"ca.crt": "PEM"},
        },
    ):
        await client.create(item)
    if plane:
        await client.create(hosted_control_plane(params(made), made))
    return made


async def clean(client: Client, namespace: str | None = None) -> None:
    """Take pools and clusters away without an operator, so that later tests' operators do not work on them.

    Without a namespace: everywhere, which is what other tests of the session left on the shared server.
    """
    for resource in (r.NODEPOOLS, r.HOSTEDCLUSTERS):
        for item in await client.list(resource, namespace):
            name, home = item["metadata"]["name"], item["metadata"]["namespace"]
            with contextlib.suppress(NotFound):
                await client.patch(resource, name, home, {"metadata": {"finalizers": None}})
                await client.delete(resource, name, home)


def _secret(name: str, namespace: str, content: Mapping[str, str], of: str | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(name, namespace, of),
        "data": dict(content),
    }


def _metadata(name: str, namespace: str, of: str | None) -> Object:
    """``of``: the control plane whose reconciler makes the object, and labels it."""
    return {"name": name, "namespace": namespace, "labels": {LABEL_CONTROL_PLANE_NAMESPACE: of} if of else {}}


def node_pool(namespace: str, name: str = "demo", **spec: Any) -> Object:
    made = crds_support.changed(
        crds_support.rendered_pool(namespace, name), "spec.release.image", "r.test/release:1.36.3"
    )
    made["spec"].update(spec)
    return made


@contextlib.asynccontextmanager
async def running_operator(
    kubeconfig: Path, reads: list[tuple[str, str]] | None = None
) -> AsyncIterator[list[tuple[str, str]]]:
    """The node pool controllers on this server; gives the list of writes they make, and fills ``reads``."""
    writes: list[tuple[str, str]] = []

    def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
        if verb not in ("get", "list", "watch") and "events" not in target:
            writes.append((verb, target))
        elif verb in ("get", "list") and reads is not None:
            reads.append((verb, target))

    async with Client(load_config(kubeconfig), observer=observer) as client:
        ctx = OperatorContext(client, Informers(client), Guests(client, inside=False), EventRecorder(client, "test"))
        views = Views()
        ctx.closers.append(views.close)
        controllers = wiring.for_nodes(ctx, views, release, wiring.sleeping_machines(ctx))
        await ctx.informers.start()
        tasks = [asyncio.create_task(controller.run()) for controller in controllers]
        try:
            yield writes
        finally:
            for controller in controllers:
                controller.stop()
            await asyncio.gather(*tasks)
            await ctx.events.flush()
            for closer in reversed(ctx.closers):
                await closer()
            await ctx.guests.close()
            await ctx.informers.stop()


@contextlib.asynccontextmanager
async def caches(client: Client) -> AsyncIterator[Watches]:
    """What a node pool's pass reads, filled, without the pass."""

    async def nothing(_key: str) -> None:
        return None

    ctx = OperatorContext(client, Informers(client), Guests(client, inside=False), EventRecorder(client, "test"))
    watches = Watches(ctx)
    watches.wire(Controller("test", nothing))
    await ctx.informers.start()
    yield watches
    await ctx.informers.stop()


def condition(item: Mapping[str, Any], kind: str) -> Object:
    found: Object = next(entry for entry in item["status"]["conditions"] if entry["type"] == kind)
    return found


async def deployment_of(client: Client, namespace: str, name: str = "demo") -> Object:
    async def ask() -> Object:
        return await client.get(r.MACHINEDEPLOYMENTS, name, f"{namespace}-demo")

    return await eventually(ask)


async def pool_with(
    client: Client, namespace: str, kind: str, status: str, name: str = "demo", *, words: str = ""
) -> Object:
    """The pool, once a condition has this status and these words."""

    async def ask() -> Object:
        pool = await client.get(r.NODEPOOLS, name, namespace)
        found = next(entry for entry in pool["status"]["conditions"] if entry["type"] == kind)
        assert found["status"] == status and words in found["message"], found
        return pool

    return await eventually(ask)


async def pool_rests(
    writes: list[tuple[str, str]], controllers: Sequence[str], change: Callable[[str], Awaitable[Any]]
) -> None:
    """Wait for passes that write nothing: ones that always write never rest. `change` is given a word of its own."""

    async def rested() -> bool:
        before = len(writes)
        async with a_pass(*controllers):
            await change(uuid.uuid4().hex)
        return writes[before:] == []

    await eventually(rested, f"{', '.join(controllers)} write nothing")


async def quiet(writes: list[tuple[str, str]]) -> int:
    """Wait until the operator has stopped writing, and say how many writes there were."""
    seen = -1
    while seen != len(writes):
        seen = len(writes)
        await asyncio.sleep(1)
    return seen
