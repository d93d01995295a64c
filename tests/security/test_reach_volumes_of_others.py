"""A tenant is cluster-admin in its guest: it writes PersistentVolumes, classes and VolumeAttachments as it likes.

In the namespace of its machines lie the data of its etcd, disks of machines and, on an external infra cluster, volumes
and machines of others. None of it can be had through the storage driver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support import infra_storage as s
from tests.support import management as m
from tests.support.api_server import account_token
from tests.support.eventually import eventually
from tests.support.unit.controlplane import params

from hcp.api.names import CSI_ACCOUNT, LABEL_CSI_ROLE, LABEL_INFRA_ID, MARK_CSI_SIZE
from hcp.api.paths import at
from hcp.controlplane.storage import account
from hcp.csi import rpc
from hcp.csi.kubevirt import objects, rights
from hcp.csi.kubevirt.access import Access
from hcp.csi.kubevirt.origins import Source
from hcp.csi.kubevirt.volumes import Volumes
from hcp.csi.wire import csi_pb2 as csi
from hcp.install import storage as install
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.config import UserAuth

MI = 2**20
_Mode = csi.VolumeCapability.AccessMode
USE = csi.VolumeCapability(
    access_mode=_Mode(mode=_Mode.SINGLE_NODE_WRITER), mount=csi.VolumeCapability.MountVolume(fs_type="ext4")
)
# Of nobody, of a machine of this very cluster, and a volume of the neighbour in the same infra namespace.
OTHERS: dict[str, dict[str, str]] = {
    "data-etcd-0": {},
    "node-a-rhcos": {LABEL_INFRA_ID: s.ID},
    "pvc-neighbour": {LABEL_INFRA_ID: "other-abcde", LABEL_CSI_ROLE: objects.VOLUME},
}
FORGED = (*OTHERS, "../persistentvolumeclaims/data-etcd-0", "..", "a/b", "x" * 64)


@pytest.fixture
async def admin(tmp_path: Path, bin_dir: Path) -> AsyncIterator[Client]:
    folder = tmp_path / "server"
    folder.mkdir()
    with m.management_server(folder, bin_dir) as server:
        async with Client(load_config(server.kubeconfig)) as client:
            await s.prepare(client)
            yield client


@pytest.fixture
async def infra(admin: Client) -> AsyncIterator[s.Hands]:
    async with s.hands(admin) as made:
        await made.machine("node-a")
        await made.machine("node-b")
        await made.machine("neighbour", infra_id="other-abcde")
        for name, labels in OTHERS.items():
            await admin.create(_disk(name, labels))
        yield made


def _disk(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name, "namespace": s.NS, "labels": labels, "annotations": {MARK_CSI_SIZE: str(64 * MI)}},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": str(64 * MI)}}}},
    }


async def code(channel: grpc.aio.Channel, infra: s.Hands, request: Any) -> grpc.StatusCode:
    try:
        await s.ask(channel, infra, request)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def volumes_of(admin: Client, node: str) -> list[str]:
    vm = await admin.get(k.VIRTUALMACHINES, node, s.NS)
    return [one["name"] for one in vm["spec"]["template"]["spec"]["volumes"]]


async def test_a_forged_handle_attaches_grows_copies_and_deletes_nothing(
    admin: Client, infra: s.Hands, tmp_path: Path
) -> None:
    size = csi.CapacityRange(required_bytes=64 * MI)
    async with s.driver(admin, tmp_path) as channel:
        for handle in FORGED:
            source = csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource(volume_id=handle))
            snapshot = csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id=handle))
            requests = [
                csi.ControllerPublishVolumeRequest(volume_id=handle, node_id="node-a", volume_capability=USE),
                csi.ControllerExpandVolumeRequest(
                    volume_id=handle, capacity_range=csi.CapacityRange(required_bytes=1024 * MI)
                ),
                csi.CreateSnapshotRequest(name="snapshot-1", source_volume_id=handle),
                csi.CreateVolumeRequest(
                    name="pvc-copy", capacity_range=size, volume_capabilities=[USE], volume_content_source=source
                ),
                csi.CreateVolumeRequest(
                    name="pvc-copy", capacity_range=size, volume_capabilities=[USE], volume_content_source=snapshot
                ),
                csi.ValidateVolumeCapabilitiesRequest(volume_id=handle, volume_capabilities=[USE]),
            ]
            for request in requests:
                assert await code(channel, infra, request) == grpc.StatusCode.NOT_FOUND, (handle, request)
            # Something that is not there is as good as deleted or detached, and nothing happens.
            assert await code(channel, infra, csi.DeleteVolumeRequest(volume_id=handle)) == grpc.StatusCode.OK
            assert await code(channel, infra, csi.DeleteSnapshotRequest(snapshot_id=handle)) == grpc.StatusCode.OK
        gone = csi.ControllerUnpublishVolumeRequest(volume_id="rhcos", node_id="node-a")
        assert await code(channel, infra, gone) == grpc.StatusCode.OK
        listed = await rpc.call(channel, csi.ListVolumesRequest(), within=60)
        assert not listed.entries
    assert {one["metadata"]["name"] for one in await admin.list(k.DATAVOLUMES, s.NS)} == set(OTHERS)
    assert await volumes_of(admin, "node-a") == ["rhcos"]


async def test_a_class_of_ones_own_gets_no_infra_class_that_is_not_mapped(
    admin: Client, infra: s.Hands, tmp_path: Path
) -> None:
    wanted: Any = {"capacity_range": csi.CapacityRange(required_bytes=64 * MI), "volume_capabilities": [USE]}
    attempts: list[dict[str, str]] = [
        {"infraStorageClassName": "vault"},
        {"infraStorageClassName": "vault", "bus": "scsi"},
        {"storageClassName": "vault"},
        {"bus": "ide"},
    ]
    async with s.driver(admin, tmp_path) as channel:
        for parameters in attempts:
            request = csi.CreateVolumeRequest(name="pvc-1", parameters=parameters, **wanted)
            assert await code(channel, infra, request) == grpc.StatusCode.INVALID_ARGUMENT, parameters
    assert await admin.get_or_none(k.DATAVOLUMES, "pvc-1", s.NS) is None


async def test_a_name_that_another_cluster_has_is_neither_given_nor_described(
    admin: Client, infra: s.Hands, tmp_path: Path
) -> None:
    async with s.driver(admin, tmp_path) as channel:
        request = csi.CreateVolumeRequest(
            name="pvc-neighbour",
            capacity_range=csi.CapacityRange(required_bytes=64 * MI),
            volume_capabilities=[USE],
        )
        assert await code(channel, infra, request) == grpc.StatusCode.ALREADY_EXISTS


async def test_a_forged_attachment_reaches_no_foreign_machine_and_no_foreign_volume(
    admin: Client, infra: s.Hands
) -> None:
    await Volumes(s.ByHand(admin, s.SETTINGS)).create("pvc-mine", [Access()], 64 * MI, 0, {}, Source())
    await s.persistent_volume(admin, "mine", "pvc-mine")
    await s.persistent_volume(admin, "etcd", "data-etcd-0")
    await s.persistent_volume(admin, "theirs", "pvc-neighbour")

    async def told(name: str) -> Any:
        return at(await admin.get(k.VOLUMEATTACHMENTS, name), "status.attachError.message")

    async with s.attacher(admin, admin):
        for name, volume, node in (
            ("a", "mine", "neighbour"),
            ("b", "etcd", "node-a"),
            ("c", "theirs", "node-a"),
            ("d", "mine", "nobody"),
        ):
            await s.attachment(admin, name, volume, node)
            words = await eventually(lambda name=name: told(name), f"{name} is refused")  # type: ignore[misc]
            assert "There is no" in words
            await admin.delete(k.VOLUMEATTACHMENTS, name)
        await s.attachment(admin, "e", "mine", "node-a")
        await eventually(lambda: attached(admin, "e"), "its own volume")
    assert await volumes_of(admin, "neighbour") == ["rhcos"]
    assert await volumes_of(admin, "node-a") == ["rhcos", "pvc-mine"]


async def attached(admin: Client, name: str) -> bool:
    return at(await admin.get(k.VOLUMEATTACHMENTS, name), "status.attached") is True


async def test_access_modes_written_by_hand_put_no_disk_on_two_machines(
    admin: Client, infra: s.Hands, tmp_path: Path
) -> None:
    """A PersistentVolume may say ReadWriteMany of a volume that was made for one."""
    await Volumes(s.ByHand(admin, s.SETTINGS)).create("pvc-one", [Access()], 64 * MI, 0, {}, Source())
    shared = csi.VolumeCapability(
        access_mode=_Mode(mode=_Mode.MULTI_NODE_MULTI_WRITER), block=csi.VolumeCapability.BlockVolume()
    )
    async with s.driver(admin, tmp_path) as channel:
        for node, expected in (("node-a", grpc.StatusCode.OK), ("node-b", grpc.StatusCode.FAILED_PRECONDITION)):
            request = csi.ControllerPublishVolumeRequest(volume_id="pvc-one", node_id=node, volume_capability=shared)
            assert await code(channel, infra, request) == expected
    assert await volumes_of(admin, "node-b") == ["rhcos"]


async def test_the_drivers_account_ends_at_its_namespace_and_reads_no_secrets(
    admin: Client, infra: s.Hands, tmp_path: Path
) -> None:
    """Whoever takes over the driver's pod has its token."""
    await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clusters-other"}})
    for one in (*install.objects(), *account(replace(params(), namespace=s.NS, owner=None))):
        await admin.apply(one)
    config = replace(admin.config, auth=UserAuth(token=await account_token(admin, CSI_ACCOUNT, s.NS)))
    async with Client(config) as driver:
        for right in (*rights.ALL, *rights.CLAIMS):
            for name in right.resources:
                plural, _, sub = name.partition("/")
                for verb in right.verbs:
                    resource = k.Resource(right.group, "v1", plural, "")
                    # The authorizer reads rights from a cache that follows.
                    mine = partial(driver.allowed, verb, resource, s.NS, sub)
                    await eventually(mine, f"{verb} {name}")
                    assert not await driver.allowed(verb, resource, "clusters-other", sub), (verb, name)
        for verb, resource in (
            ("get", k.SECRETS),
            ("list", k.SECRETS),
            ("get", k.CONFIGMAPS),
            ("create", k.PODS),
            ("delete", k.PVCS),
            ("patch", k.VIRTUALMACHINES),
            ("create", k.VIRTUALMACHINES),
            ("delete", k.VMIS),
            ("get", k.PVS),
        ):
            assert not await driver.allowed(verb, resource, s.NS), (verb, resource)
