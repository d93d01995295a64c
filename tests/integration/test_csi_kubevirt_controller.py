"""The Controller service of csi.kubevirt.io on its socket, with the real definitions of KubeVirt and CDI behind it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.support import infra_storage as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.api.names import LABEL_INFRA_ID, MARK_CSI_PUBLISHED
from hcp.api.paths import at
from hcp.csi.kubevirt import handles, hotplug
from hcp.csi.kubevirt.hotplug import MOST_PER_NODE
from hcp.csi.kubevirt.settings import InfraClass
from hcp.csi.wire import csi_pb2 as csi
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.kube.follow import follow

MI = 2**20
_Mode = csi.VolumeCapability.AccessMode
Ask = Callable[..., Any]


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        yield client


@pytest.fixture
async def infra(admin: Client) -> AsyncIterator[s.Hands]:
    async with s.hands(admin) as made:
        yield made


@pytest.fixture
async def ask(admin: Client, infra: s.Hands, tmp_path: Path) -> AsyncIterator[Ask]:
    async with s.driver(admin, tmp_path) as channel:

        async def one(request: Any) -> Any:
            return await s.ask(channel, infra, request)

        yield one


def use(mode: Any = _Mode.SINGLE_NODE_WRITER, *, block: bool = False, kind: str = "ext4") -> Any:
    access = _Mode(mode=mode)
    if block:
        return csi.VolumeCapability(access_mode=access, block=csi.VolumeCapability.BlockVolume())
    return csi.VolumeCapability(access_mode=access, mount=csi.VolumeCapability.MountVolume(fs_type=kind))


def wanted(name: str, size: int = 64 * MI, capability: Any = None, **more: Any) -> Any:
    return csi.CreateVolumeRequest(
        name=name,
        capacity_range=csi.CapacityRange(required_bytes=size),
        volume_capabilities=[capability or use()],
        **more,
    )


def publish(volume: str, node: str, capability: Any = None) -> Any:
    return csi.ControllerPublishVolumeRequest(volume_id=volume, node_id=node, volume_capability=capability or use())


def unpublish(volume: str, node: str) -> Any:
    return csi.ControllerUnpublishVolumeRequest(volume_id=volume, node_id=node)


async def refused(answer: Any, code: grpc.StatusCode) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer
    assert caught.value.code() == code, caught.value.details()
    return str(caught.value.details())


async def test_a_volume_is_exactly_as_large_as_asked_and_asking_again_gives_the_same(ask: Ask, admin: Client) -> None:
    first = await ask(wanted("pvc-1"))
    again = await ask(wanted("pvc-1"))
    assert first.volume.volume_id == again.volume.volume_id == "pvc-1"
    assert first.volume.capacity_bytes == 64 * MI
    made = await admin.get(k.DATAVOLUMES, "pvc-1", s.NS)
    assert made["spec"]["storage"]["resources"]["requests"]["storage"] == str(64 * MI)
    assert made["metadata"]["labels"][LABEL_INFRA_ID] == s.ID
    assert "storageClassName" not in made["spec"]["storage"]  # the infra cluster's default, whichever it is
    words = await refused(ask(wanted("pvc-1", 128 * MI)), grpc.StatusCode.ALREADY_EXISTS)
    assert "67108864 bytes" in words


async def test_a_file_system_for_several_nodes_is_refused_with_what_to_do(ask: Ask) -> None:
    shared = use(_Mode.MULTI_NODE_MULTI_WRITER)
    words = await refused(ask(wanted("pvc-2", capability=shared)), grpc.StatusCode.INVALID_ARGUMENT)
    assert "volumeMode: Block" in words and "ReadWriteOnce" in words


async def test_a_block_volume_for_several_nodes_needs_a_class_that_can(ask: Ask, admin: Client) -> None:
    shared = use(_Mode.MULTI_NODE_MULTI_WRITER, block=True)
    plain = {"infraStorageClassName": "plain"}
    words = await refused(ask(wanted("pvc-3", capability=shared, parameters=plain)), grpc.StatusCode.INVALID_ARGUMENT)
    assert "plain" in words
    await ask(wanted("pvc-3", capability=shared, parameters={"infraStorageClassName": "fast"}))
    storage = (await admin.get(k.DATAVOLUMES, "pvc-3", s.NS))["spec"]["storage"]
    assert (storage["accessModes"], storage["volumeMode"]) == (["ReadWriteMany"], "Block")


async def test_a_volume_reaches_its_machine_with_a_serial_and_leaves_it(
    ask: Ask, admin: Client, infra: s.Hands
) -> None:
    await infra.machine("node-a")
    volume = (await ask(wanted("pvc-4"))).volume.volume_id
    await ask(publish(volume, "node-a"))
    await ask(publish(volume, "node-a"))
    vmi = await admin.get(k.VMIS, "node-a", s.NS)
    disk = next(one for one in vmi["spec"]["domain"]["devices"]["disks"] if one["name"] == volume)
    assert disk["serial"] == handles.serial(volume)
    await refused(ask(csi.DeleteVolumeRequest(volume_id=volume)), grpc.StatusCode.FAILED_PRECONDITION)
    listed = await ask(csi.ListVolumesRequest())
    assert [(e.volume.volume_id, list(e.status.published_node_ids)) for e in listed.entries] == [(volume, ["node-a"])]
    await ask(unpublish(volume, "node-a"))
    await ask(unpublish(volume, "node-a"))
    vm = await admin.get(k.VIRTUALMACHINES, "node-a", s.NS)
    assert [one["name"] for one in vm["spec"]["template"]["spec"]["volumes"]] == ["rhcos"]
    await ask(csi.DeleteVolumeRequest(volume_id=volume))
    await ask(csi.DeleteVolumeRequest(volume_id=volume))
    assert await admin.get_or_none(k.DATAVOLUMES, volume, s.NS) is None


async def test_a_volume_with_one_writer_is_never_on_two_machines(ask: Ask, admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await infra.machine("node-b")
    volume = (await ask(wanted("pvc-5"))).volume.volume_id
    await ask(publish(volume, "node-a"))
    words = await refused(ask(publish(volume, "node-b")), grpc.StatusCode.FAILED_PRECONDITION)
    assert "node-a" in words
    infra.idle.add("node-a")  # KubeVirt is slow: the specification is changed, the disk is still there
    await refused(ask(unpublish(volume, "node-a")), grpc.StatusCode.UNAVAILABLE)
    await refused(ask(publish(volume, "node-b")), grpc.StatusCode.FAILED_PRECONDITION)
    infra.idle.clear()
    await ask(unpublish(volume, "node-a"))
    await ask(publish(volume, "node-b"))
    made = await admin.get(k.DATAVOLUMES, volume, s.NS)
    assert made["metadata"]["annotations"][MARK_CSI_PUBLISHED] == "node-b"


async def test_a_machine_that_was_promised_a_volume_keeps_others_off_it(
    ask: Ask, admin: Client, infra: s.Hands
) -> None:
    """A second controller sees the promise of the first, before the machine has anything."""
    await infra.machine("node-a")
    await infra.machine("node-b")
    volume = (await ask(wanted("pvc-6"))).volume.volume_id
    promise = {"metadata": {"annotations": {MARK_CSI_PUBLISHED: "node-a"}}}
    await admin.patch(k.DATAVOLUMES, volume, s.NS, promise)
    await refused(ask(publish(volume, "node-b")), grpc.StatusCode.FAILED_PRECONDITION)
    await ask(unpublish(volume, "node-a"))
    await ask(publish(volume, "node-b"))


async def test_a_volume_of_a_machine_that_is_gone_is_free(ask: Ask, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await infra.machine("node-b")
    volume = (await ask(wanted("pvc-7"))).volume.volume_id
    await ask(publish(volume, "node-a"))
    await infra.end("node-a")
    await ask(unpublish(volume, "node-a"))
    await ask(publish(volume, "node-b"))


async def test_a_machine_whose_instance_outlives_it_keeps_its_volume_until_that_has_ended(
    ask: Ask, admin: Client, infra: s.Hands
) -> None:
    """The disk is in use as long as something runs, whatever became of the object that asked for it."""
    await infra.machine("node-a")
    await infra.machine("node-b")
    volume = (await ask(wanted("pvc-17"))).volume.volume_id
    await ask(publish(volume, "node-a"))
    infra.idle.add("node-a")
    await admin.delete(k.VIRTUALMACHINES, "node-a", s.NS)
    await refused(ask(unpublish(volume, "node-a")), grpc.StatusCode.UNAVAILABLE)
    words = await refused(ask(publish(volume, "node-b")), grpc.StatusCode.FAILED_PRECONDITION)
    assert "node-a" in words
    await infra.end("node-a")
    infra.idle.clear()
    await ask(unpublish(volume, "node-a"))
    await ask(publish(volume, "node-b"))


async def test_a_machine_that_is_full_takes_no_more_until_one_has_left(ask: Ask, admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    volume = (await ask(wanted("pvc-15"))).volume.volume_id
    mine = (await ask(wanted("pvc-16"))).volume.volume_id
    await ask(publish(mine, "node-a"))
    for number in range(MOST_PER_NODE - 1):
        await plug(admin, "node-a", f"other-{number}")
    words = await refused(ask(publish(volume, "node-a")), grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert f"node-a has {MOST_PER_NODE} volumes, and takes no more" in words
    made = await admin.get(k.DATAVOLUMES, volume, s.NS)
    assert MARK_CSI_PUBLISHED not in made["metadata"].get("annotations", {}), "nothing was promised"
    await ask(publish(mine, "node-a"))  # what it has counts once
    await ask(unpublish(mine, "node-a"))
    await ask(publish(volume, "node-a"))


async def plug(admin: Client, machine: str, name: str) -> None:
    """A volume of the cluster that somebody else has asked for."""
    await s.ByHand(admin, s.SETTINGS).plug(machine, "addvolume", hotplug.add_options(name, "scsi"))


async def test_a_shared_block_volume_may_be_on_two_machines(ask: Ask, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await infra.machine("node-b")
    shared = use(_Mode.MULTI_NODE_MULTI_WRITER, block=True)
    volume = (await ask(wanted("pvc-8", capability=shared))).volume.volume_id
    await ask(publish(volume, "node-a", shared))
    await ask(publish(volume, "node-b", shared))
    [entry] = (await ask(csi.ListVolumesRequest())).entries
    assert list(entry.status.published_node_ids) == ["node-a", "node-b"]


async def test_expansion_asks_for_what_the_file_system_takes_too_and_says_when_a_class_cannot(
    ask: Ask, admin: Client
) -> None:
    volume = (await ask(wanted("pvc-9", 100 * MI))).volume.volume_id
    bigger = csi.CapacityRange(required_bytes=200 * MI)
    answer = await ask(csi.ControllerExpandVolumeRequest(volume_id=volume, capacity_range=bigger))
    assert (answer.capacity_bytes, answer.node_expansion_required) == (200 * MI, True)
    claim = await admin.get(k.PVCS, volume, s.NS)
    assert int(at(claim, "spec.resources.requests.storage")) == 212 * MI
    again = await ask(csi.ControllerExpandVolumeRequest(volume_id=volume, capacity_range=bigger))
    assert again.capacity_bytes == 200 * MI
    plain = await ask(wanted("pvc-10", parameters={"infraStorageClassName": "plain"}))
    await eventually(lambda: admin.get(k.PVCS, "pvc-10", s.NS), "the claim")
    words = await refused(
        ask(csi.ControllerExpandVolumeRequest(volume_id=plain.volume.volume_id, capacity_range=bigger)),
        grpc.StatusCode.INVALID_ARGUMENT,
    )
    assert "plain cannot make volumes larger" in words


async def test_expansion_that_was_refused_works_once_the_class_can(ask: Ask, admin: Client) -> None:
    plain = {"infraStorageClassName": "plain"}
    volume = (await ask(wanted("pvc-18", 100 * MI, parameters=plain))).volume.volume_id
    await eventually(lambda: admin.get(k.PVCS, volume, s.NS), "the claim")
    bigger = csi.CapacityRange(required_bytes=200 * MI)
    request = csi.ControllerExpandVolumeRequest(volume_id=volume, capacity_range=bigger)
    await refused(ask(request), grpc.StatusCode.INVALID_ARGUMENT)
    await admin.patch(k.STORAGECLASSES, "plain", None, {"allowVolumeExpansion": True})

    async def grown() -> bool:
        # Which classes can is read by the API server from a cache that follows.
        try:
            return bool((await ask(request)).capacity_bytes == 200 * MI)
        except grpc.aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            return False

    await eventually(grown, "nobody remembers the refusal")


async def test_a_snapshot_uses_a_class_of_its_group_and_comes_back_as_a_volume(ask: Ask, admin: Client) -> None:
    volume = (await ask(wanted("pvc-11", parameters={"infraStorageClassName": "fast"}))).volume.volume_id
    other = {"infraSnapshotClassName": "plain-snap"}
    words = await refused(
        ask(csi.CreateSnapshotRequest(name="snapshot-1", source_volume_id=volume, parameters=other)),
        grpc.StatusCode.INVALID_ARGUMENT,
    )
    assert "fast-snap" in words
    fitting = {"infraSnapshotClassName": "fast-snap"}
    made = await ask(csi.CreateSnapshotRequest(name="snapshot-1", source_volume_id=volume, parameters=fitting))
    assert made.snapshot.ready_to_use and made.snapshot.size_bytes == 64 * MI
    live = await admin.get(k.VOLUMESNAPSHOTS, "snapshot-1", s.NS)
    assert live["spec"]["volumeSnapshotClassName"] == "fast-snap"
    source = csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id="snapshot-1"))
    await ask(wanted("pvc-12", volume_content_source=source))
    restored = await admin.get(k.DATAVOLUMES, "pvc-12", s.NS)
    assert restored["spec"]["source"] == {"snapshot": {"namespace": s.NS, "name": "snapshot-1"}}
    clone = csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource(volume_id=volume))
    await ask(wanted("pvc-13", volume_content_source=clone))
    assert (await admin.get(k.DATAVOLUMES, "pvc-13", s.NS))["spec"]["source"] == {
        "pvc": {"namespace": s.NS, "name": volume}
    }
    found = await ask(csi.ListSnapshotsRequest(source_volume_id=volume))
    assert [one.snapshot.snapshot_id for one in found.entries] == ["snapshot-1"]
    await ask(csi.DeleteSnapshotRequest(snapshot_id="snapshot-1"))
    await ask(csi.DeleteSnapshotRequest(snapshot_id="snapshot-1"))


async def test_copies_are_claims_of_the_infra_cluster_where_its_class_can(admin: Client, tmp_path: Path) -> None:
    """Nothing is copied by a pod, nothing gets larger than its source; CDI gets the room it wants for the rest."""
    able = InfraClass("fast", "a", shared_block=True, direct=True, block=("ReadWriteMany",), clones=True)
    given = replace(s.SETTINGS, default=able, classes={**s.SETTINGS.classes, "fast": able})
    async with s.hands(admin) as infra, s.driver(admin, tmp_path, given) as channel:

        async def ask(request: Any) -> Any:
            return await s.ask(channel, infra, request)

        await ask(wanted("pvc-20", 100 * MI))
        empty = await admin.get(k.PVCS, "pvc-20", s.NS)
        assert (empty["spec"]["volumeMode"], empty["spec"]["accessModes"]) == ("Block", ["ReadWriteMany"])
        assert at(empty, "spec.resources.requests.storage") == str(100 * MI)
        assert empty["metadata"]["annotations"]["cdi.kubevirt.io/storage.populatedFor"] == "pvc-20"
        made = await admin.get(k.DATAVOLUMES, "pvc-20", s.NS)
        assert made["metadata"]["annotations"]["cdi.kubevirt.io/allowClaimAdoption"] == "true"
        await ask(csi.CreateSnapshotRequest(name="snapshot-20", source_volume_id="pvc-20"))
        cut = csi.VolumeContentSource(snapshot=csi.VolumeContentSource.SnapshotSource(snapshot_id="snapshot-20"))
        copy = csi.VolumeContentSource(volume=csi.VolumeContentSource.VolumeSource(volume_id="pvc-20"))
        await ask(wanted("pvc-21", 100 * MI, volume_content_source=cut))
        await ask(wanted("pvc-21", 100 * MI, volume_content_source=cut))
        restored = await admin.get(k.PVCS, "pvc-21", s.NS)
        source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snapshot-20"}
        assert restored["spec"]["dataSource"] == source
        assert at(restored, "spec.resources.requests.storage") == str(100 * MI)
        await ask(wanted("pvc-22", 200 * MI, volume_content_source=copy))
        cloned = await admin.get(k.PVCS, "pvc-22", s.NS)
        assert cloned["spec"]["dataSource"] | {"apiGroup": None} == {
            "apiGroup": None,
            "kind": "PersistentVolumeClaim",
            "name": "pvc-20",
        }
        assert at(cloned, "spec.resources.requests.storage") == str(200 * MI)

        # To another class CDI copies, and wants at least the room of the claim.
        plain = {"infraStorageClassName": "plain"}
        await ask(wanted("pvc-23", 100 * MI, volume_content_source=cut, parameters=plain))
        other = await admin.get(k.DATAVOLUMES, "pvc-23", s.NS)
        assert other["spec"]["source"] == {"snapshot": {"namespace": s.NS, "name": "snapshot-20"}}
        assert at(other, "spec.storage.resources.requests.storage") == str(100 * MI)

        # A claim whose DataVolume never came to be gets one, and goes with it.
        await admin.delete(k.DATAVOLUMES, "pvc-22", s.NS)
        made_again: list[str] = []
        async with contextlib.aclosing(follow(admin, k.DATAVOLUMES, "pvc-22", s.NS)) as changes:
            asked = asyncio.create_task(ask(csi.DeleteVolumeRequest(volume_id="pvc-22")))
            async for one in changes:
                if one is not None:
                    made_again.append(one["metadata"]["annotations"]["cdi.kubevirt.io/allowClaimAdoption"])
                elif made_again:
                    break
            await asked
        assert set(made_again) == {"true"}


async def test_what_the_infra_cluster_refuses_is_told_and_leaves_nothing(
    ask: Ask, admin: Client, infra: s.Hands
) -> None:
    infra.idle.add("volumes")
    words = await refused(ask(wanted("pvc-14")), grpc.StatusCode.UNAVAILABLE)
    assert "not ready yet" in words
    bound = {
        "type": "Bound",
        "status": "False",
        "reason": "ErrExceededQuota",
        "message": "exceeded quota: hosted-cluster",
    }
    await admin.patch(
        k.DATAVOLUMES, "pvc-14", s.NS, {"status": {"phase": "Pending", "conditions": [bound]}}, subresource="status"
    )
    words = await refused(ask(wanted("pvc-14")), grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert "exceeded quota" in words
    assert await admin.get_or_none(k.DATAVOLUMES, "pvc-14", s.NS) is None
