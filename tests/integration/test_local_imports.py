"""How an embedded cluster has disks imported, asked of a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.kube.resources import PVCS
from hcp.local.addons import virtualization
from hcp.local.addons.applying import apply_all

SOURCE = "cdi.kubevirt.io/storage.import.source"
DIRECT = "cdi.kubevirt.io/storage.import.requiresDirectIo"


def claim(namespace: str, name: str, annotations: dict[str, str]) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


async def test_only_claims_that_a_disk_is_imported_into_ask_for_direct_writes(api_server: Path, namespace: str) -> None:
    async with Client(load_config(api_server)) as client:
        await apply_all(client, virtualization.direct_imports())

        async def asks() -> bool:
            """The API server takes a policy up some time after it was written."""
            made = await client.create(claim(namespace, "disk", {SOURCE: "registry"}), dry_run=True)
            return bool(made["metadata"]["annotations"].get(DIRECT) == "true")

        await eventually(asks, "claims of imports ask for direct writes")
        made = await client.create(claim(namespace, "data", {"example.com/a": "b"}))
        assert made["metadata"]["annotations"] == {"example.com/a": "b"}
        made = await client.create(claim(namespace, "bare", {}))
        assert "annotations" not in made["metadata"]
        await client.delete_collection(PVCS, namespace)
