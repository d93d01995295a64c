"""The infra cluster as this driver may use it: one namespace, and there what has the marks of one hosted cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import LABEL_INFRA_ID
from hcp.csi.errors import ResourceExhausted
from hcp.csi.kubevirt import handles, hotplug, objects
from hcp.csi.kubevirt.settings import Settings
from hcp.csi.kubevirt.waiting import until
from hcp.kube import Client, Resource
from hcp.kube.errors import Forbidden
from hcp.kube.resources import DATAVOLUMES, VIRTUALMACHINES, VMIS, VOLUMESNAPSHOTS

Object = dict[str, Any]
# Sidecars wait three minutes for an answer; ours comes before, with the reason.
PATIENCE = 150.0
_SUBRESOURCES = "/apis/subresources.kubevirt.io/v1/namespaces"


@dataclass(frozen=True)
class Infra:
    """Everything that is found through it belongs to the hosted cluster."""

    client: Client
    settings: Settings
    patience: float = PATIENCE

    @property
    def namespace(self) -> str:
        return self.settings.namespace

    async def volume(self, handle: str) -> Object | None:
        return await self._of_ours(DATAVOLUMES, handle, objects.VOLUME)

    async def snapshot(self, handle: str) -> Object | None:
        return await self._of_ours(VOLUMESNAPSHOTS, handle, objects.SNAPSHOT)

    async def _of_ours(self, resource: Resource, handle: str, role: str) -> Object | None:
        if not handles.valid(handle):
            return None
        found = await self.client.get_or_none(resource, handle, self.namespace)
        return found if objects.ours(found, self.settings, role) else None

    async def volumes(self) -> list[Object]:
        return await self._listed(DATAVOLUMES, objects.VOLUME)

    async def snapshots(self) -> list[Object]:
        return await self._listed(VOLUMESNAPSHOTS, objects.SNAPSHOT)

    async def _listed(self, resource: Resource, role: str) -> list[Object]:
        found = await self.client.list(resource, self.namespace, objects.selector(self.settings, role))
        mine = [one for one in found if objects.ours(one, self.settings, role)]
        return sorted(mine, key=lambda one: str(one["metadata"]["name"]))

    async def create(self, obj: Object) -> Object:
        """A quota that is full is something the guest's user can act on."""
        try:
            return await self.client.create(obj)
        except Forbidden as error:
            if "exceeded quota" in str(error.cause):
                raise ResourceExhausted("The hosted cluster may have no more volumes", cause=error.cause) from error
            raise

    async def machine(self, name: str) -> hotplug.Machine | None:
        """A machine of this cluster, None for everything else that may be called so."""
        if not handles.valid(name):
            return None
        vm, vmi = await asyncio.gather(
            self.client.get_or_none(VIRTUALMACHINES, name, self.namespace),
            self.client.get_or_none(VMIS, name, self.namespace),
        )
        return hotplug.machines([vm] if vm else [], [vmi] if vmi else [], self.settings.infra_id).get(name)

    async def machines(self) -> dict[str, hotplug.Machine]:
        labels = f"{LABEL_INFRA_ID}={self.settings.infra_id}"
        vms, vmis = await asyncio.gather(
            self.client.list(VIRTUALMACHINES, self.namespace, labels), self.client.list(VMIS, self.namespace, labels)
        )
        return hotplug.machines(vms, vmis, self.settings.infra_id)

    async def plug(self, machine: str, action: str, options: Mapping[str, Any]) -> None:
        """`addvolume` or `removevolume`."""
        path = f"{_SUBRESOURCES}/{self.namespace}/virtualmachines/{machine}/{action}"
        await self.client.raw("PUT", path, body=dict(options), accept="*/*")

    async def until(self, resource: Resource, name: str, judge: Callable[[Object | None], bool]) -> Object | None:
        return await until(self.client, resource, name, self.namespace, judge, self.patience)
