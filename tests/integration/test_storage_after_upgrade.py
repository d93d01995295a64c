"""A hosted cluster that reaches another minor has what it stores stored anew; before, and after, nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.hosted_operator import hands, says
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.guest import migration_record
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as k

CONDITION = "StorageVersionsUpToDate"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    """The minor that the cluster begins with; its processes are the same for all releases here."""
    return await s.push_release(registry, tmp_path, "1.35.4")


def definition(written: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {
            "group": "example.test",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": [{"name": v, "served": True, "storage": v == written, "schema": schema} for v in ("v1", "v2")],
        },
    }


async def reach(admin: Client, image: str, version: str) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"release": {"image": image}}})

    async def reached() -> bool:
        live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
        first = live["status"]["controlPlaneVersion"]["history"][0]
        return (first["version"], first["state"]) == (version, "Completed")

    await eventually(reached, f"the control plane is at {version}", hands(admin, NS))


async def test_a_new_minor_has_everything_stored_anew_and_a_patch_release_nothing(
    admin: Client, pods: HostedPods, registry: Registry, tmp_path: Path
) -> None:
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await guest.apply(definition("v1"))
        await guest.apply(definition("v2"))

        async def versions() -> list[str]:
            live = await guest.get(k.CRDS, "things.example.test")
            return list((live.get("status") or {}).get("storedVersions") or [])

        async def both() -> bool:
            return await versions() == ["v1", "v2"]

        await eventually(both, "objects may lie in both versions", hands(admin, NS))
        await reach(admin, await s.push_release(registry, tmp_path, "1.35.5"), "1.35.5")
        assert await s.condition(admin, NAME, CONDITION) == {}
        assert await admin.get_or_none(k.CONFIGMAPS, migration_record.NAME, NS) is None

        await reach(admin, await s.push_release(registry, tmp_path, "1.36.3"), "1.36.3")
        await eventually(lambda: says(admin, NAME, CONDITION, "True"), "all is stored anew", hands(admin, NS))
        assert await versions() == ["v2"]
        record = await admin.get(k.CONFIGMAPS, migration_record.NAME, NS)

        await reach(admin, await s.push_release(registry, tmp_path, "1.36.4"), "1.36.4")
        assert await says(admin, NAME, CONDITION, "True")
        same = await admin.get(k.CONFIGMAPS, migration_record.NAME, NS)
        assert same["metadata"]["resourceVersion"] == record["metadata"]["resourceVersion"]
