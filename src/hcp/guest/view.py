"""One watched view of a guest, shared by all who look into it.

Tenants make objects, as many and as large as their etcd holds: of each kind only what somebody here reads is followed,
and only when there is a reason to. A guest without nodes costs one watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY, ROUTER_NAMESPACE
from hcp.guest import slim
from hcp.guest.monitoring import metrics_server
from hcp.guest.monitoring.plan import NAMESPACE as MONITORING
from hcp.guest.objects import SYSTEM
from hcp.guest.olm import NAMESPACE as OLM
from hcp.kube import Client
from hcp.kube.resources import (
    APISERVICES,
    CATALOGSOURCES,
    CLUSTERROLEBINDINGS,
    CSRS,
    DAEMONSETS,
    DEPLOYMENTS,
    NETWORKPOLICIES,
    NODES,
    PODS,
    SECRETS,
    STATEFULSETS,
)
from hcp.runtime import Informer

_OURS = f"{LABEL_MANAGED_BY}={MANAGED_BY}"
_AGENTS = "k8s-app=konnectivity-agent"
_MOST_PARTS = 500


def _phase_only(pod: dict[str, Any]) -> dict[str, Any]:
    """All that is read of an agent: whether it runs, and under which name."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "labels")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "status": {"phase": status.get("phase")},
    }


class GuestView:
    """The caches of one guest; begins with its nodes."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.nodes = Informer(client, NODES, transform=slim.node, most=slim.MOST_NODES)
        # Followed once there are node pools.
        self.requests = Informer(client, CSRS, transform=slim.request, most=slim.MOST_REQUESTS)
        # What we keep there, followed once there are nodes to run it.
        self.daemons = Informer(client, DAEMONSETS, SYSTEM, _OURS, most=_MOST_PARTS)
        self.deployments = Informer(client, DEPLOYMENTS, SYSTEM, _OURS, most=_MOST_PARTS)
        self.agents = Informer(client, PODS, SYSTEM, _AGENTS, transform=_phase_only, most=slim.MOST_NODES)

        # Followed once there are nodes, where the release has an ingress.
        self.routers = Informer(client, DEPLOYMENTS, ROUTER_NAMESPACE, _OURS, most=_MOST_PARTS)

        # Followed where the release can read them: the first one starts those who do.
        self.catalogs = Informer(client, CATALOGSOURCES, transform=slim.head, most=slim.MOST_CATALOGS)

        # Followed where the release's own network can enforce them: the first one starts who does.
        self.policies = Informer(client, NETWORKPOLICIES, transform=slim.head, most=slim.MOST_POLICIES)

        # Followed while catalogs are read: one of these is made by the others, so it carries no label of ours.
        self.readers = Informer(client, DEPLOYMENTS, OLM, most=_MOST_PARTS)

        # Followed where people log in: the Secret that stands for the rights of kubeadmin, and these rights.
        only = "metadata.name=kubeadmin"
        self.kubeadmin = Informer(client, SECRETS, SYSTEM, fields=only, transform=slim.head)
        self.administrators = Informer(client, CLUSTERROLEBINDINGS, fields=only, transform=slim.head)

        # Followed where there is monitoring: its parts, and whether the API server reaches metrics-server.
        self.monitors = {
            one.kind: Informer(client, one, MONITORING, _OURS, most=_MOST_PARTS)
            for one in (DAEMONSETS, DEPLOYMENTS, STATEFULSETS)
        }
        self.metrics_api = Informer(client, APISERVICES, fields=f"metadata.name={metrics_server.API}")

    @property
    def _login(self) -> tuple[Informer, ...]:
        return (self.kubeadmin, self.administrators)

    @property
    def _monitoring(self) -> tuple[Informer, ...]:
        return (self.metrics_api, *self.monitors.values())

    @property
    def _parts(self) -> tuple[Informer, ...]:
        return (self.daemons, self.deployments, self.agents)

    def of(self, obj: Mapping[str, Any]) -> Informer | None:
        """The cache that holds this object, if one does."""
        place = (str(obj.get("kind")), str((obj.get("metadata") or {}).get("namespace")))
        held = {("DaemonSet", SYSTEM): self.daemons, ("Deployment", SYSTEM): self.deployments}
        held |= {(kind, MONITORING): one for kind, one in self.monitors.items()}
        return {**held, ("Deployment", ROUTER_NAMESPACE): self.routers}.get(place)

    def on_node(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the name of each Node that changed."""
        self.nodes.add_listener(lambda old, new: tell(str((new or old or {})["metadata"]["name"])))

    def on_change(self, tell: Callable[[], None]) -> None:
        """Call `tell` whenever anything in it changed."""
        parts = (*self._login, *self._monitoring, *self._parts)
        for informer in (self.nodes, self.catalogs, self.policies, self.readers, self.routers, *parts):
            informer.add_listener(lambda _old, _new: tell())

    async def start(self) -> None:
        """Begin following; returns at once, since a guest may hang."""
        await self.nodes.start()

    async def follow_requests(self) -> None:
        """Requests for certificates, from now on. Safe to call again."""
        await self.requests.start()

    async def follow_parts(self) -> None:
        """The parts that run on nodes, from now on. Safe to call again."""
        await asyncio.gather(*(informer.start() for informer in self._parts))
        await asyncio.gather(*(informer.wait_synced() for informer in self._parts))

    async def follow_routers(self) -> None:
        """The default ingress, from now on. Safe to call again."""
        await self.routers.start()
        await self.routers.wait_synced()

    async def follow_catalogs(self) -> None:
        """Catalogs of operators, from now on; their kind must be there. Safe to call again."""
        await self.catalogs.start()
        await self.catalogs.wait_synced()

    async def follow_policies(self) -> None:
        """NetworkPolicies, from now on. Safe to call again."""
        await self.policies.start()
        await self.policies.wait_synced()

    async def follow_readers(self) -> None:
        """Who reads catalogs, from now on. Safe to call again."""
        await self.readers.start()
        await self.readers.wait_synced()

    async def follow_login(self) -> None:
        """Who administers by a password, from now on. Safe to call again."""
        await asyncio.gather(*(informer.start() for informer in self._login))
        await asyncio.gather(*(informer.wait_synced() for informer in self._login))

    async def follow_monitoring(self) -> None:
        """What measures, from now on. Safe to call again."""
        await asyncio.gather(*(informer.start() for informer in self._monitoring))
        await asyncio.gather(*(informer.wait_synced() for informer in self._monitoring))

    async def stop(self) -> None:
        more = (*self._login, *self._monitoring, *self._parts)
        followed = (self.nodes, self.requests, self.catalogs, self.policies, self.readers, self.routers, *more)
        await asyncio.gather(*(informer.stop() for informer in followed))
