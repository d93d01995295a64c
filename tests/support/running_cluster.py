"""The hosted cluster whose keys are changed while it runs."""

from __future__ import annotations

import base64

from hcp.kube import Client
from hcp.kube import resources as k

NAME = "keys"
NS = f"clusters-{NAME}"


async def kubeconfig(client: Client) -> bytes:
    found = await client.get(k.SECRETS, f"{NAME}-admin-kubeconfig", "clusters")
    return base64.b64decode(found["data"]["kubeconfig"])
