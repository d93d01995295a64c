"""A small web workload in the hosted cluster, reached from outside through a load balancer address.

Where the hosted cluster has volumes, each of its pods has a claim of its own, and answers from there.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcp.errors import HcpError

if TYPE_CHECKING:
    from hcp.kube import Client

_NAME = "hello"
_PORT = 8080
_WAIT_SECONDS = 420.0
# A disk has to be made, plugged into a machine and formatted there.
_WAIT_WITH_CLAIMS = 900.0
_DATA = "/data"


class Workload:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def show(self) -> str:
        """Deploys it and returns what it answered."""
        return asyncio.run(self._show())

    async def _show(self) -> str:
        from hcp.kube import Client, load_config

        async with Client(load_config(str(self.kubeconfig))) as client:
            image, claims = await _image(client), await _has_volumes(client)
            for manifest in manifests(image, claims=claims):
                await client.apply(manifest, manager="hcp-demo")
            try:
                async with asyncio.timeout(_WAIT_WITH_CLAIMS if claims else _WAIT_SECONDS):
                    address = await _address(client)
                    where = ", from a volume of its own" if claims else ""
                    return f"http://{address}:{_PORT}/ answers: {await _answer(address)}{where}"
            except TimeoutError as error:
                raise HcpError(
                    "The web workload did not answer in time",
                    hint=f"kubectl --kubeconfig {self.kubeconfig} describe service,pods{',pvc' if claims else ''}",
                ) from error


def manifests(image: str, *, claims: bool = False) -> list[dict[str, Any]]:
    labels = {"app": _NAME}
    folder = f"{_DATA if claims else '/tmp'}/www"
    server = f"mkdir -p {folder} && hostname > {folder}/index.html && exec busybox httpd -f -p {_PORT} -h {folder}"
    container: dict[str, Any] = {
        "name": "web",
        "image": image,
        "command": ["sh", "-c", server],
        "ports": [{"containerPort": _PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": _PORT}, "periodSeconds": 2},
    }
    if claims:
        container["volumeMounts"] = [{"name": "data", "mountPath": _DATA}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec: dict[str, Any] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    if claims:
        room = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
        spec |= {
            "serviceName": _NAME,
            "podManagementPolicy": "Parallel",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": room}],
        }
    metadata = {"name": _NAME, "namespace": "default"}
    service = {"type": "LoadBalancer", "selector": labels, "ports": [{"port": _PORT}]}
    kind = "StatefulSet" if claims else "Deployment"
    return [
        {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    ]


async def _has_volumes(client: Client) -> bool:
    """Whether a claim that names no class gets one: a cluster of an earlier tour may be without."""
    from hcp.controlplane.storage_plan import default_class
    from hcp.kube import resources as r

    return default_class(await client.list(r.STORAGECLASSES)) is not None


async def _image(client: Client) -> str:
    """An image with busybox in it that every node already has: a pull takes minutes on an emulated CPU."""
    from hcp.kube import resources as r

    found = await client.get(r.DAEMONSETS, "kube-proxy", "kube-system")
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


async def _address(client: Client) -> str:
    from hcp.kube import resources as r
    from hcp.kube.follow import follow

    async with aclosing(follow(client, r.SERVICES, _NAME, "default")) as states:
        async for service in states:
            ingress = ((service or {}).get("status") or {}).get("loadBalancer", {}).get("ingress") or []
            if ingress:
                return str(ingress[0].get("ip") or ingress[0].get("hostname"))
    raise AssertionError("a followed object never ends")


async def _answer(address: str) -> str:
    import aiohttp

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        while True:
            try:
                async with session.get(f"http://{address}:{_PORT}/") as response:
                    return f"pod {(await response.text()).strip()}"
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(1)


def first_node(kubeconfig: Path) -> str:
    """The name of one node, which is its virtual machine's; empty when nobody can say it."""
    try:
        return asyncio.run(_first_node(kubeconfig))
    except HcpError:
        return ""


async def _first_node(kubeconfig: Path) -> str:
    from hcp.kube import Client, load_config
    from hcp.kube import resources as r

    async with Client(load_config(str(kubeconfig))) as client:
        return min((str(node["metadata"]["name"]) for node in await client.list(r.NODES)), default="")
