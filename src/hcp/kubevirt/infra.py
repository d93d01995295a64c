"""The cluster the worker VMs run in: the management cluster itself, or another one given by a kubeconfig."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import INFRA_CREDENTIALS, KUBECONFIG_KEY
from hcp.errors import HcpError
from hcp.kube import Client, found_config
from hcp.kube.errors import NotFound
from hcp.kube.resources import SECRETS


class NoKubeconfig(HcpError):
    """Nobody gave a kubeconfig of the infra cluster that can be used, or it is gone with the hosted namespace."""


@dataclass(frozen=True)
class Infra:
    """Where the VMs of one hosted cluster are."""

    client: Client
    namespace: str
    external: bool


def credentials(platform: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The external infra block of a HostedCluster's ``spec.platform``, if it has one."""
    found: Mapping[str, Any] | None = ((platform.get("kubevirt") or {}).get("credentials")) or None
    return found


class InfraClients:
    """One client per hosted namespace with external infra; a changed kubeconfig makes a new client."""

    def __init__(self, management: Client) -> None:
        self._management = management
        self._clients: dict[str, tuple[str, Client]] = {}
        self._lock = asyncio.Lock()

    async def get(self, hosted_namespace: str, given: Mapping[str, Any] | None) -> Infra:
        """The infra of a hosted cluster whose credentials block is ``given`` (None: the management cluster)."""
        if not given:
            return Infra(self._management, hosted_namespace, external=False)
        async with self._lock:
            try:
                secret = await self._management.get(SECRETS, INFRA_CREDENTIALS, hosted_namespace)
            except NotFound as error:
                raise NoKubeconfig(
                    "the kubeconfig of the infra cluster is not in the hosted namespace yet", cause=str(error)
                ) from error
            data = (secret.get("data") or {}).get(KUBECONFIG_KEY, "")
            if not data:
                raise HcpError(f"the secret {INFRA_CREDENTIALS!r} has no key {KUBECONFIG_KEY!r}")
            known = self._clients.get(hosted_namespace)
            if known is None or known[0] != data:
                client = Client(found_config.load(base64.b64decode(data), "The kubeconfig of the infra cluster"))
                self._clients[hosted_namespace] = (data, client)
                if known is not None:
                    await known[1].close()
            namespace = given.get("infraNamespace") or hosted_namespace
            return Infra(self._clients[hosted_namespace][1], namespace, external=True)

    def keep(self, hosted_namespace: str, client: Client) -> Client:
        """A client that somebody made in place of ours, closed with the others."""
        self._clients[hosted_namespace] = ("", client)
        return client

    async def forget(self, hosted_namespace: str) -> None:
        """Close the client of a hosted cluster that goes away."""
        async with self._lock:
            known = self._clients.pop(hosted_namespace, None)
        if known is not None:
            await known[1].close()

    async def close(self) -> None:
        for namespace in list(self._clients):
            await self.forget(namespace)
