"""A hosted cluster whose API is there and which has no nodes, made by the operator inside the test."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import gone, hands, reports, says
from tests.support.registry import Registry

from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k


@asynccontextmanager
async def hosted_api(
    admin: Client, name: str, image: str, registry: Registry, tmp_path: Path, bin_dir: Path, **spec: Any
) -> AsyncIterator[Client]:
    """Its kubeconfig lies in tmp_path; the cluster is deleted at the end."""
    ns, port, hosted = f"clusters-{name}", free_port(), s.HostedProcesses(tmp_path, bin_dir)
    networking = {
        "networkType": "OVNKubernetes",
        "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
        "apiServer": {"port": port},
    }
    await s.create(admin, name, image, registry, networking=networking, **spec)

    async def made() -> bool:
        return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", ns) is not None

    try:
        await eventually(made, "the API server is deployed", hands(admin, ns))
        await hosted.start(admin, ns, port)
        inside = lambda: says(admin, name, "ConfigOperatorReconciliationSucceeded", "True")  # noqa: E731
        await eventually(inside, "the inside", reports(admin, ns))
        secret = await admin.get(k.SECRETS, f"{name}-admin-kubeconfig", "clusters")
        text = base64.b64decode(secret["data"]["kubeconfig"])
        (tmp_path / "guest.kubeconfig").write_bytes(text)
        async with Client(untrusted_kubeconfig.load(text)) as client:
            yield client
    finally:
        hosted.stop()
        await admin.delete(k.HOSTEDCLUSTERS, name, "clusters", missing_ok=True)
        await eventually(lambda: gone(admin, name), "all is gone")
