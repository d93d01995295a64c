"""A small web workload in the hosted cluster, reached from outside through a load balancer address."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hcp.errors import HcpError

_NAME = "hello"
_PORT = 8080
_WAIT_SECONDS = 420.0
_SERVER = f"mkdir /tmp/www && hostname > /tmp/www/index.html && exec busybox httpd -f -p {_PORT} -h /tmp/www"


class Workload:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def show(self) -> str:
        """Deploys it and returns what it answered."""
        return asyncio.run(self._show())

    async def _show(self) -> str:
        from hcp.kube import Client, load_config

        async with Client(load_config(str(self.kubeconfig))) as client:
            image = await _image(client)
            for manifest in manifests(image):
                await client.apply(manifest, manager="hcp-demo")
            try:
                async with asyncio.timeout(_WAIT_SECONDS):
                    address = await _address(client)
                    return f"http://{address}:{_PORT}/ answers: {await _answer(address)}"
            except TimeoutError as error:
                raise HcpError(
                    "The web workload did not answer in time",
                    hint=f"kubectl --kubeconfig {self.kubeconfig} describe service,pods",
                ) from error


def manifests(image: str) -> list[dict[str, Any]]:
    labels = {"app": _NAME}
    container = {
        "name": "web",
        "image": image,
        "command": ["sh", "-c", _SERVER],
        "ports": [{"containerPort": _PORT}],
        "readinessProbe": {"httpGet": {"path": "/", "port": _PORT}, "periodSeconds": 2},
    }
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": _NAME, "namespace": "default"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _NAME, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": labels, "ports": [{"port": _PORT}]},
        },
    ]


async def _image(client: Any) -> str:
    """An image with busybox in it that every node already has: a pull takes minutes on an emulated CPU."""
    from hcp.kube import resources as r

    found = await client.get(r.DAEMONSETS, "kube-proxy", "kube-system")
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


async def _address(client: Any) -> str:
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
