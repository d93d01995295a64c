"""Bringing up an embedded cluster that an older hcp made."""

from __future__ import annotations

from pathlib import Path

from hcp.kube import Client, load_config
from hcp.kube.resources import STORAGECLASSES
from hcp.local.addons import storage
from hcp.local.addons.applying import apply_all


async def test_a_storage_class_that_cannot_be_changed_stays(api_server: Path) -> None:
    wanted = next(obj for obj in storage.objects("i", "h") if obj["kind"] == "StorageClass")
    older = {**wanted, "volumeBindingMode": "WaitForFirstConsumer"}
    async with Client(load_config(api_server)) as client:
        await client.create(older)
        try:
            before = await client.get(STORAGECLASSES, storage.CLASS)
            await apply_all(client, [wanted])
            after = await client.get(STORAGECLASSES, storage.CLASS)
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            assert after["volumeBindingMode"] == "WaitForFirstConsumer"
        finally:
            await client.delete(STORAGECLASSES, storage.CLASS)
