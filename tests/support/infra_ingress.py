"""An infra cluster of its own with a router, and hosted clusters that ask it for names below its domain."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import crds as crds_support
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import VMS, account, asked_by
from tests.support.guides import documents
from tests.support.router import World, running_world

from hcp.hostedcluster import infra_ingress, ingress
from hcp.hostedcluster.infra_ingress import InfraIngress
from hcp.hostedcluster.translate import params
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as r
from hcp.kubevirt.infra import InfraClients
from hcp.kubevirt.passthrough import Found, Wish

Object = dict[str, Any]
PORT = 31443


@dataclass
class Place:
    """`admin` owns the infra cluster; `management` is another cluster, where the kubeconfig lies."""

    admin: Client
    management: Client
    server: ApiServer
    kubeconfig: str = ""

    async def granted(self, rights: Sequence[documents.Rule] = documents.NEWER_RIGHTS) -> None:
        """An account that counts: a server reads rights from a cache that follows."""
        self.kubeconfig = await account(self.admin, self.server, rights)
        async with Client(untrusted_kubeconfig.load(self.kubeconfig)) as client:
            await eventually(lambda: client.allowed("create", r.SERVICES, VMS), "its rights count")

    async def ask(self, cluster: Object, wish: Wish) -> Found:
        """As the operator asks, with the account's rights."""
        meta = cluster["metadata"]
        await asked_by(self.management, self.kubeconfig, f"{meta['namespace']}-{meta['name']}")
        infras = InfraClients(self.management)
        try:
            return (await InfraIngress(infras, lambda _key: None).answer(cluster, wish))[0]
        finally:
            await infras.close()

    async def left(self, *resources: r.Resource) -> list[str]:
        """Names of what is in the namespace of the machines."""
        kinds = resources or (r.ROUTES, r.SERVICES)
        return sorted([one["metadata"]["name"] for kind in kinds for one in await self.admin.list(kind, VMS)])


@contextlib.asynccontextmanager
async def place(server: ApiServer, management: Client) -> AsyncIterator[Place]:
    async with Client(load_config(server.kubeconfig)) as admin:
        yield Place(admin, management, server)


@contextlib.asynccontextmanager
async def routed(place: Place, directory: Path) -> AsyncIterator[World]:
    """With our router there, over a real HAProxy."""
    async with running_world(place.admin, VMS, directory) as world:
        yield world


def hosted(name: str = "demo", namespace: str = "clusters", **changes: Any) -> Object:
    """A HostedCluster as the operator sees it once it has chosen its ids."""
    made = crds_support.rendered_cluster(namespace, name)
    made["metadata"] |= {"uid": f"uid-of-{name}", "generation": 1}
    ref = {"name": f"{name}-infra-credentials", "key": "kubeconfig"}
    kubevirt = {
        "baseDomainPassthrough": True,
        "generateID": f"{name}0123456"[:10],
        "credentials": {"infraNamespace": VMS, "infraKubeConfigSecret": ref},
    }
    made["spec"]["infraID"] = f"{name}-abcde"
    made["spec"]["platform"] = {"type": "KubeVirt", "kubevirt": kubevirt | changes.pop("kubevirt", {})}
    made["spec"] |= changes
    return made


def domain_wish(cluster: Object) -> Wish:
    return Wish("of the kubeconfig", cluster["spec"]["infraID"])


def way_wish(cluster: Object, base: str, prefix: str = "", *, through: bool = True) -> Wish:
    """The way below `base`, as the phase asks for it."""
    p = params(cluster)
    domain = f"apps.{prefix or cluster['metadata']['name']}.{base}"
    made = ingress.passthrough(p, cluster["spec"], domain, PORT)
    way = infra_ingress.elsewhere(made, VMS, p.infra_id) if through else ()
    return Wish("of the kubeconfig", p.infra_id, base, way, ingress.named(p, domain, VMS))
