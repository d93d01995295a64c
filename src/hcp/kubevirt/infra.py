"""The cluster the worker VMs run in: the management cluster itself, or another one given by a kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import INFRA_CREDENTIALS, KUBECONFIG_KEY
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.kube import Client, ClientPool, ClusterConfig, untrusted_kubeconfig
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
    found: Mapping[str, Any] | None = (at(platform, "kubevirt.credentials")) or None
    return found


class InfraClients:
    """Clients for external infra clusters, by hosted namespace; a changed kubeconfig makes a new one."""

    def __init__(self, management: Client, pool: ClientPool | None = None) -> None:
        self._management = management
        self._pool = ClientPool() if pool is None else pool

    async def get(self, hosted_namespace: str, given: Mapping[str, Any] | None) -> Infra:
        """The infra of a hosted cluster whose credentials block is ``given`` (None: the management cluster)."""
        if not given:
            return Infra(self._management, hosted_namespace, external=False)
        try:
            secret = await self._management.get(SECRETS, INFRA_CREDENTIALS, hosted_namespace)
        except NotFound as error:
            raise NoKubeconfig(
                "the kubeconfig of the infra cluster is not in the hosted namespace yet", cause=str(error)
            ) from error
        data = str((secret.get("data") or {}).get(KUBECONFIG_KEY, ""))
        if not data:
            raise HcpError(f"the secret {INFRA_CREDENTIALS!r} has no key {KUBECONFIG_KEY!r}")

        def load() -> ClusterConfig:
            return untrusted_kubeconfig.load(base64.b64decode(data), "The kubeconfig of the infra cluster")

        client = self._pool.get(hosted_namespace, INFRA_CREDENTIALS, data, load)
        return Infra(client, given.get("infraNamespace") or hosted_namespace, external=True)

    def given(self, hosted_namespace: str, config: ClusterConfig) -> Client:
        """A client by credentials that somebody gave in place of the cluster's own."""
        return self._pool.get(hosted_namespace, "given", "", lambda: config)

    async def close(self) -> None:
        await self._pool.close()
