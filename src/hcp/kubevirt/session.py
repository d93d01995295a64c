"""A hosted cluster with node pools: its guest, and the VMs behind it.

A session exists while a hosted cluster has an API and node pools. It joins the watched view of the guest with caches of
where its machines run, and is replaced as a whole when one of its two kubeconfigs changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api.names import LABEL_CAPI_CLUSTER_NAME, LABEL_INFRA_ID
from hcp.api.spec import is_unmanaged
from hcp.kube import Client
from hcp.kube.errors import Forbidden
from hcp.kube.resources import ENDPOINTSLICES, PODS, SERVICES, VMIS
from hcp.kubevirt import launchers, slim
from hcp.kubevirt.infra import Infra
from hcp.kubevirt.loadbalancer import LABEL_SERVICE, MANAGED_BY
from hcp.runtime import Informer
from hcp.runtime.context import Informers

Object = dict[str, Any]


@dataclass(frozen=True)
class InfraCaches:
    """What is known of the infra cluster; shared by all hosted clusters whose VMs run in the management cluster."""

    instances: Informer
    services: Informer
    slices: Informer
    # None where the infra cluster's owner does not let us read pods.
    launchers: Informer | None

    @staticmethod
    def shared(informers: Informers) -> InfraCaches:
        """The management cluster's caches."""
        managed = f"endpointslice.kubernetes.io/managed-by={MANAGED_BY}"
        return InfraCaches(
            informers.get(VMIS, labels=LABEL_INFRA_ID),
            informers.get(SERVICES, labels=LABEL_SERVICE),
            informers.get(ENDPOINTSLICES, labels=managed),
            informers.get(PODS, labels=launchers.SELECTOR, transform=launchers.slim),
        )

    @staticmethod
    async def own(infra: Infra, infra_id: str) -> InfraCaches:
        """Caches of an external infra cluster, for one hosted cluster."""
        selector = f"{LABEL_INFRA_ID}={infra_id}"
        ours = f"{launchers.SELECTOR},{selector}"
        pods: Informer | None = Informer(infra.client, PODS, infra.namespace, ours, transform=launchers.slim)
        try:
            await infra.client.list(PODS, infra.namespace, ours)
        except Forbidden:
            pods = None
        return InfraCaches(
            Informer(infra.client, VMIS, infra.namespace, selector),
            Informer(infra.client, SERVICES, infra.namespace, selector),
            Informer(infra.client, ENDPOINTSLICES, infra.namespace, selector),
            pods,
        )

    @property
    def all(self) -> tuple[Informer, ...]:
        pods = () if self.launchers is None else (self.launchers,)
        return (self.instances, self.services, self.slices, *pods)


@dataclass
class Session:
    """The caches and clients of one hosted cluster."""

    hosted_namespace: str
    cluster: Mapping[str, Any]
    infra_id: str
    guest: Client
    infra: Infra
    caches: InfraCaches
    # Of the guest's view, which others read too.
    nodes: Informer
    requests: Informer
    services: Informer = field(init=False)
    # Requests for certificates that wait, for a person or to know more, and the nodes they are for.
    waiting: dict[str, str] = field(default_factory=dict)
    _local_slices: Informer | None = None
    # Told of the guest's EndpointSlices, once somebody follows them.
    on_slice: Callable[[Object], None] | None = None
    _first_look: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.services = Informer(
            self.guest,
            SERVICES,
            fields="spec.type=LoadBalancer",
            transform=slim.service,
            most=slim.MOST_SERVICES,
        )

    @property
    def unmanaged(self) -> bool:
        """Whether the machines are the user's own: there is no cloud behind them, so no load balancers either."""
        return is_unmanaged(self.cluster)

    @property
    def own(self) -> tuple[Informer, ...]:
        """What is followed for this session alone."""
        behind = self.caches.all if self.infra.external else ()
        return behind if self.unmanaged else (self.services, *behind)

    async def start(self, on_nodes: Callable[[], None] = lambda: None) -> None:
        """Begin following; listeners are already attached. `on_nodes`: all nodes are known, even if there are none."""
        await asyncio.gather(*(informer.start() for informer in self.own))
        self._first_look = asyncio.create_task(self._tell_of_nodes(on_nodes))

    async def _tell_of_nodes(self, on_nodes: Callable[[], None]) -> None:
        await self.nodes.wait_synced()
        on_nodes()

    async def stop(self) -> None:
        if self._first_look is not None:
            self._first_look.cancel()
        informers = [*self.own]
        if self._local_slices is not None:
            informers.append(self._local_slices)
        await asyncio.gather(*(informer.stop() for informer in informers))

    async def guest_slices(self) -> Informer:
        """Guest EndpointSlices, followed only once a Service with local traffic policy needs them."""
        if self._local_slices is None:
            informer = Informer(self.guest, ENDPOINTSLICES, transform=slim.endpoint_slice, most=slim.MOST_SLICES)
            self._local_slices = informer
            told = self.on_slice
            if told is not None:
                informer.add_listener(lambda old, new: told(new or old or {}))
            await informer.start()
        await self._local_slices.wait_synced()
        return self._local_slices

    def instance_list(self) -> list[Object]:
        """The running VMs of this hosted cluster."""
        return [vmi for vmi in self.caches.instances.list(self.infra.namespace) if self.owns(vmi)]

    def launcher_list(self) -> list[Object] | None:
        """The pods of these VMs; None where we may not read them."""
        if self.caches.launchers is None:
            return None
        return self.caches.launchers.list(self.infra.namespace)

    def owns(self, item: Mapping[str, Any]) -> bool:
        """Whether an infra object is of this hosted cluster."""
        labels = item["metadata"].get("labels") or {}
        return bool(labels.get(LABEL_INFRA_ID, labels.get(LABEL_CAPI_CLUSTER_NAME)) == self.infra_id)
