"""What KubeVirt, CDI and storage drivers would do in an infra cluster, done by hand on a real API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from tests.support import crds as crds_support
from tests.support.definitions import VIRTUALIZATION, open_crd, real

from hcp.api.names import LABEL_INFRA_ID
from hcp.api.paths import at
from hcp.csi import rpc
from hcp.csi.exclusive import Exclusive
from hcp.csi.identity import CONTROLLER_SERVICE, Identity
from hcp.csi.kubevirt import DRIVER
from hcp.csi.kubevirt.attacher import Attacher
from hcp.csi.kubevirt.attaching import Attaching
from hcp.csi.kubevirt.controller_service import ControllerService
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.settings import InfraClass, Settings, SnapshotClass
from hcp.csi.serving import connect, serving
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import Conflict, NotFound

Object = dict[str, Any]
NS, ID = "clusters-demo", "demo-abcde"
SETTINGS = Settings(
    NS,
    ID,
    default=InfraClass("fast", shared_block=True),
    classes={
        "fast": InfraClass("fast", "a", shared_block=True),
        "plain": InfraClass("plain", "b", shared_block=False),
    },
    snapshot_classes={"fast-snap": SnapshotClass("fast-snap", "a"), "plain-snap": SnapshotClass("plain-snap", "b")},
)


async def prepare(client: Client) -> None:
    snapshots = open_crd(k.VOLUMESNAPSHOTS)
    snapshots["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    await crds_support.install(client, [*real(*VIRTUALIZATION), snapshots])
    await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    for name, grows in (("fast", True), ("plain", False)):
        await client.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": f"{name}.example.com",
                "allowVolumeExpansion": grows,
            }
        )


@dataclass(frozen=True)
class ByHand(Infra):
    """virt-api is not there: what it writes for `addvolume` and `removevolume` is written here."""

    async def plug(self, machine: str, action: str, options: Mapping[str, Any]) -> None:
        vm = await self.client.get(k.VIRTUALMACHINES, machine, self.namespace)
        inner = vm["spec"]["template"]["spec"]
        volumes = [one for one in inner.get("volumes") or () if one["name"] != options["name"]]
        known = len(volumes) != len(inner.get("volumes") or ())
        if known is (action == "addvolume"):
            raise Conflict("Cannot change the volumes", status=409, cause=f"{options['name']} is there: {known}")
        disks = [one for one in at(inner, "domain.devices.disks") or () if one["name"] != options["name"]]
        if action == "addvolume":
            volumes.append({"name": options["name"], **options["volumeSource"]})
            disks.append(options["disk"])
        inner["volumes"] = volumes
        inner["domain"].setdefault("devices", {})["disks"] = disks
        await self.client.replace(vm)


@dataclass
class Hands:
    """Keeps the infra cluster going; what is in `idle` is left undone."""

    client: Client
    idle: set[str] = field(default_factory=set)
    phase: str = "Ready"
    """How far disks get."""
    task: asyncio.Task[None] | None = None

    async def machine(self, name: str, infra_id: str = ID) -> None:
        labels = {LABEL_INFRA_ID: infra_id}
        inner = {
            "domain": {"devices": {"disks": [{"name": "rhcos", "disk": {"bus": "virtio"}}]}},
            "volumes": [{"name": "rhcos", "dataVolume": {"name": f"{name}-rhcos"}}],
        }
        metadata = {"name": name, "namespace": NS, "labels": labels}
        spec = {"runStrategy": "Always", "template": {"metadata": {"labels": labels}, "spec": inner}}
        await self.client.create(
            {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec}
        )
        running = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": metadata}
        await self.client.create({**running, "spec": inner, "status": {"phase": "Running"}})

    async def end(self, name: str) -> None:
        for resource in (k.VIRTUALMACHINES, k.VMIS):
            await self.client.delete(resource, name, NS, missing_ok=True)

    async def run(self) -> None:
        while True:
            with contextlib.suppress(HcpError, KeyError):
                await self._volumes()
                await self._snapshots()
                await self._claims()
                await self._machines()
            await asyncio.sleep(0.02)

    async def _volumes(self) -> None:
        for one in await self.client.list(k.DATAVOLUMES, NS):
            if at(one, "status.phase") == "Succeeded" or "volumes" in self.idle:
                continue
            wanted = one["spec"]["storage"]
            meta = one["metadata"]
            owner = {"apiVersion": one["apiVersion"], "kind": one["kind"], "name": meta["name"], "uid": meta["uid"]}
            size = int(wanted["resources"]["requests"]["storage"])
            block = wanted.get("volumeMode") == "Block"
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": meta["name"],
                    "namespace": NS,
                    "labels": meta.get("labels", {}),
                    "ownerReferences": [owner],
                },
                "spec": {
                    "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
                    "storageClassName": wanted.get("storageClassName") or "fast",
                    "volumeName": f"pv-{meta['name']}",
                    # What a file system takes comes on top, as CDI does it.
                    "resources": {"requests": {"storage": str(size if block else size * 106 // 100)}},
                },
            }
            if meta.get("annotations", {}).get("cdi.kubevirt.io/allowClaimAdoption") != "true":
                with contextlib.suppress(Conflict):
                    await self.client.create(claim)
            await self.client.patch(
                k.DATAVOLUMES, meta["name"], NS, {"status": {"phase": "Succeeded"}}, subresource="status"
            )

    async def _claims(self) -> None:
        for one in await self.client.list(k.PVCS, NS):
            asked = one["spec"]["resources"]["requests"]["storage"]
            if at(one, "status.capacity.storage") != asked and "claims" not in self.idle:
                body = {"status": {"phase": "Bound", "capacity": {"storage": asked}}}
                await self.client.patch(k.PVCS, one["metadata"]["name"], NS, body, subresource="status")

    async def _snapshots(self) -> None:
        for one in await self.client.list(k.VOLUMESNAPSHOTS, NS):
            if not at(one, "status.creationTime") and "snapshots" not in self.idle:
                body = {"status": {"creationTime": "2026-01-02T03:04:05Z", "readyToUse": True}}
                await self.client.patch(k.VOLUMESNAPSHOTS, one["metadata"]["name"], NS, body, subresource="status")

    async def _machines(self) -> None:
        running = {one["metadata"]["name"]: one for one in await self.client.list(k.VMIS, NS)}
        for vm in await self.client.list(k.VIRTUALMACHINES, NS):
            vmi = running.get(vm["metadata"]["name"])
            if vmi is None or vm["metadata"]["name"] in self.idle:
                continue
            volumes = vm["spec"]["template"]["spec"]["volumes"]
            status = [{"name": v["name"], "target": "sda", "phase": self.phase} for v in volumes]
            if at(vmi, "spec.volumes") == volumes and at(vmi, "status.volumeStatus") == status:
                continue
            disks = vm["spec"]["template"]["spec"]["domain"]["devices"]["disks"]
            vmi["spec"] |= {"volumes": volumes}
            vmi["spec"]["domain"]["devices"]["disks"] = disks
            await self.client.replace({**vmi, "status": {"phase": "Running", "volumeStatus": status}})


@asynccontextmanager
async def hands(client: Client) -> AsyncIterator[Hands]:
    made = Hands(client)
    made.task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        made.task.cancel()
        await asyncio.gather(made.task, return_exceptions=True)
        for resource in (k.VIRTUALMACHINES, k.VMIS, k.DATAVOLUMES, k.VOLUMESNAPSHOTS, k.PVCS):
            with contextlib.suppress(NotFound):
                for one in await client.list(resource, NS):
                    if one["metadata"].get("finalizers"):
                        await client.patch(resource, one["metadata"]["name"], NS, {"metadata": {"finalizers": None}})
                    await client.delete(resource, one["metadata"]["name"], NS, missing_ok=True)


@asynccontextmanager
async def driver(client: Client, folder: Path, given: Settings = SETTINGS) -> AsyncIterator[grpc.aio.Channel]:
    """The Controller service on a socket, as sidecars have it."""
    infra, busy = ByHand(client, given, patience=5.0), Exclusive()
    service = ControllerService(infra, Attaching(infra), busy)
    socket = folder / "csi.sock"
    identity = Identity(DRIVER, (CONTROLLER_SERVICE,))
    async with serving(socket, {rpc.IDENTITY: identity, rpc.CONTROLLER: service}), connect(socket) as channel:
        yield channel


async def ask(channel: grpc.aio.Channel, made: Hands, request: Any) -> Any:
    """As sidecars do: what is not ready yet is asked for again, unless the test itself holds something up."""
    async with asyncio.timeout(300):
        while True:
            try:
                return await rpc.call(channel, request, within=60)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or made.idle:
                    raise


@asynccontextmanager
async def attacher(
    client: Client, guest: Client, given: Settings = SETTINGS, patience: float = 5.0
) -> AsyncIterator[Attacher]:
    """Follows the VolumeAttachments of the guest, which may be the same API server."""
    made = Attacher(guest, Attaching(ByHand(client, given, patience=patience)), Exclusive())
    await made.attachments.start()
    task = asyncio.create_task(made.controller.run())
    try:
        yield made
    finally:
        made.controller.stop()
        await task
        await made.attachments.stop()


async def persistent_volume(guest: Client, name: str, handle: str, mode: str = "ReadWriteOnce") -> None:
    await guest.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "accessModes": [mode],
                "capacity": {"storage": "64Mi"},
                "csi": {"driver": DRIVER, "volumeHandle": handle},
            },
        }
    )


async def attachment(guest: Client, name: str, volume: str, node: str) -> None:
    spec = {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume}}
    metadata = {"name": name}
    await guest.create(
        {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": metadata, "spec": spec}
    )
