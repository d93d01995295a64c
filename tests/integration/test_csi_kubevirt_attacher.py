"""VolumeAttachments of a guest: attached, detached, told why not. Guest and infra cluster are one API server here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support import infra_storage as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually

from hcp.api.paths import at
from hcp.csi.kubevirt.access import Access
from hcp.csi.kubevirt.attacher import FINALIZER
from hcp.csi.kubevirt.origins import Source
from hcp.csi.kubevirt.volumes import Volumes
from hcp.kube import Client, load_config
from hcp.kube import resources as k

MI = 2**20


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        yield client


@pytest.fixture
async def infra(admin: Client) -> AsyncIterator[s.Hands]:
    async with s.hands(admin) as made:
        yield made
        for one in await admin.list(k.VOLUMEATTACHMENTS):
            await admin.patch(k.VOLUMEATTACHMENTS, one["metadata"]["name"], None, {"metadata": {"finalizers": None}})
            await admin.delete(k.VOLUMEATTACHMENTS, one["metadata"]["name"], missing_ok=True)


async def make(admin: Client, name: str) -> None:
    """A volume in the infra cluster, and in the guest its PersistentVolume."""
    await Volumes(s.ByHand(admin, s.SETTINGS)).create(name, [Access()], 64 * MI, 0, {}, Source())
    await s.persistent_volume(admin, f"pv-{name}", name)


async def seen(admin: Client, name: str, path: str) -> Any:
    return at(await admin.get(k.VOLUMEATTACHMENTS, name), path)


async def plugged(admin: Client, node: str) -> list[str]:
    vm = await admin.get(k.VIRTUALMACHINES, node, s.NS)
    return [one["name"] for one in vm["spec"]["template"]["spec"]["volumes"] if one["name"] != "rhcos"]


async def test_an_attachment_is_held_made_and_let_go(admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await make(admin, "pvc-1")
    async with s.attacher(admin, admin):
        await s.attachment(admin, "csi-1", "pv-pvc-1", "node-a")
        await eventually(lambda: seen(admin, "csi-1", "status.attached"), "attached")
        live = await admin.get(k.VOLUMEATTACHMENTS, "csi-1")
        assert live["metadata"]["finalizers"] == [FINALIZER]
        assert await plugged(admin, "node-a") == ["pvc-1"]
        # The guest may lose its PersistentVolume meanwhile.
        await admin.delete(k.PVS, "pv-pvc-1")
        await admin.delete(k.VOLUMEATTACHMENTS, "csi-1")
        await eventually(lambda: _gone(admin, "csi-1"), "let go")
        assert await plugged(admin, "node-a") == []


async def _gone(admin: Client, name: str) -> bool:
    return await admin.get_or_none(k.VOLUMEATTACHMENTS, name) is None


async def test_a_second_node_waits_until_the_first_has_let_go(admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await infra.machine("node-b")
    await make(admin, "pvc-2")
    async with s.attacher(admin, admin):
        await s.attachment(admin, "csi-a", "pv-pvc-2", "node-a")
        await eventually(lambda: seen(admin, "csi-a", "status.attached"), "attached to the first")
        await s.attachment(admin, "csi-b", "pv-pvc-2", "node-b")
        words = await eventually(lambda: seen(admin, "csi-b", "status.attachError.message"), "the reason")
        assert "still attached to node-a" in words
        assert await plugged(admin, "node-b") == []
        await admin.delete(k.VOLUMEATTACHMENTS, "csi-a")
        await eventually(lambda: seen(admin, "csi-b", "status.attached"), "attached to the second")
        assert await seen(admin, "csi-b", "status.attachError") is None
        assert await plugged(admin, "node-a") == []


@pytest.mark.parametrize("phase", ["Pending", "AttachedToNode", "MountedToPod"])
async def test_a_kubelet_begins_no_sooner_than_the_machine_keeps_the_disk(
    admin: Client, infra: s.Hands, phase: str
) -> None:
    """Before it is ready, KubeVirt may take it out again because of another one, whoever has mounted it."""
    await infra.machine("node-a")
    await make(admin, "pvc-8")
    infra.phase = phase
    async with s.attacher(admin, admin):
        await s.attachment(admin, "csi-8", "pv-pvc-8", "node-a")

        async def told() -> bool:
            return phase in str(await seen(admin, "csi-8", "status.attachError.message"))

        await eventually(told, "not ready yet")
        assert not await seen(admin, "csi-8", "status.attached")
        infra.phase = "Ready"
        await eventually(lambda: seen(admin, "csi-8", "status.attached"), "the machine has it")


async def test_a_restart_takes_up_what_the_process_before_left(admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await make(admin, "pvc-3")
    infra.idle.add("node-a")
    async with s.attacher(admin, admin):
        await s.attachment(admin, "csi-3", "pv-pvc-3", "node-a")
        await eventually(lambda: seen(admin, "csi-3", "status.attachError.message"), "not yet")
    infra.idle.clear()
    async with s.attacher(admin, admin):
        await eventually(lambda: seen(admin, "csi-3", "status.attached"), "attached by the next")


async def test_a_machine_that_is_gone_keeps_no_attachment(admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await infra.machine("node-b")
    await make(admin, "pvc-4")
    async with s.attacher(admin, admin):
        await s.attachment(admin, "csi-4", "pv-pvc-4", "node-a")
        await eventually(lambda: seen(admin, "csi-4", "status.attached"), "attached")
        await infra.end("node-a")
        await admin.delete(k.VOLUMEATTACHMENTS, "csi-4")
        await eventually(lambda: _gone(admin, "csi-4"), "let go")
        await s.attachment(admin, "csi-5", "pv-pvc-4", "node-b")
        await eventually(lambda: seen(admin, "csi-5", "status.attached"), "attached elsewhere")


async def test_attachments_of_other_drivers_are_left_alone(admin: Client, infra: s.Hands) -> None:
    await infra.machine("node-a")
    await make(admin, "pvc-6")
    async with s.attacher(admin, admin) as running:
        spec = {"attacher": "other.example.com", "nodeName": "node-a", "source": {"persistentVolumeName": "pv-pvc-6"}}
        other = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "csi-6"}}
        await admin.create({**other, "spec": spec})
        await s.attachment(admin, "csi-7", "pv-pvc-6", "node-a")
        await eventually(lambda: seen(admin, "csi-7", "status.attached"), "ours")
        assert await running.reconcile("csi-6") is None
        live = await admin.get(k.VOLUMEATTACHMENTS, "csi-6")
        assert "finalizers" not in live["metadata"] and not at(live, "status.attached")
