"""A release with OLM: its kinds are in the guest from the start, its pods from the first catalog on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, mentions, says
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, kubeconfig

from hcp.api import names
from hcp.guest import catalogs, olm
from hcp.kube import Client, Resource, untrusted_kubeconfig
from hcp.kube import resources as k

VERSIONS = Resource(olm.GROUP, "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
GROUPS = Resource(olm.GROUP, "v1", "operatorgroups", "OperatorGroup")
KINDS = (k.CATALOGSOURCES, VERSIONS, GROUPS)
IMAGES = (*s.COMPONENTS, *catalogs.NEEDED)
DIGEST = "@sha256:" + "a" * 64


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": [open_crd(kind) for kind in KINDS]}
    return await s.push_release(registry, tmp_path, "1.36.3", IMAGES, OLM_DEFINITIONS=json.dumps(listed))


async def test_catalogs_start_olm_and_configuration_turns_them_off(
    admin: Client, pods: HostedPods, operator: Callable[[], Running]
) -> None:
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await eventually(lambda: guest.get_or_none(k.NAMESPACES, olm.MARKETPLACE), "where catalogs go")
        assert await guest.list(k.CATALOGSOURCES, olm.MARKETPLACE) == []
        assert await guest.get_or_none(k.NAMESPACES, olm.NAMESPACE) is None, "no catalog, so nothing runs"

        # What mirroring writes, applied by a person.
        mine = {
            "apiVersion": k.CATALOGSOURCES.api_version,
            "kind": "CatalogSource",
            "metadata": {"name": "cs-mine", "namespace": olm.MARKETPLACE},
            "spec": {"sourceType": "grpc", "image": "r.test/mine:v1"},
        }
        await guest.create(mine)
        found = await eventually(lambda: _deployments(guest, 2), "OLM runs")
        assert found == ["catalog-operator", "olm-operator"]
        packages = await eventually(lambda: guest.get_or_none(VERSIONS, "packageserver", olm.NAMESPACE), "packages")
        assert "package-server" in json.dumps(packages["spec"])
        groups = await eventually(lambda: guest.list(GROUPS), "operator groups")
        assert {one["metadata"]["namespace"] for one in groups} <= {olm.NAMESPACE, olm.OPERATORS}

        await _annotate(
            admin,
            {
                names.ANNOTATION_REDHAT_CATALOG_IMAGE: f"r.test/redhat{DIGEST}",
                names.ANNOTATION_COMMUNITY_CATALOG_IMAGE: "r.test/community:v1",
                names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES: "r.test=mirror.test:5000/here",
            },
        )
        await eventually(
            lambda: _sources(
                guest,
                {
                    "cs-mine": "r.test/mine:v1",
                    "redhat-operators": f"mirror.test:5000/here/redhat{DIGEST}",
                    "community-operators": "mirror.test:5000/here/community:v1",
                },
            ),
            "two default sources, from the mirror",
        )
        assert await mentions(admin, NAME, "AllFieldsHonoured", "olmCatalogPlacement")

        off = {"disableAllDefaultSources": True, "sources": [{"name": "redhat-operators", "disabled": False}]}
        await _configure(admin, off)
        left = {"cs-mine": "r.test/mine:v1", "redhat-operators": f"mirror.test:5000/here/redhat{DIGEST}"}
        await eventually(lambda: _sources(guest, left), "all but one are off")
        # What a tenant deletes of ours comes back; what is the tenant's own stays as it is.
        await guest.delete(k.CATALOGSOURCES, "redhat-operators", olm.MARKETPLACE)
        await eventually(lambda: _sources(guest, left), "it is there again")

        before = len(Running.latest.writes)
        await _annotate(admin, {"example.com/look": "again"})
        await eventually(lambda: says(admin, NAME, "Available", "True"), "looked at once more")
        assert Running.latest.writes[before:] == []


async def _annotate(admin: Client, annotations: dict[str, str]) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": annotations}})


async def _configure(admin: Client, hub: dict[str, Any]) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"configuration": {"operatorhub": hub}}})


async def _deployments(guest: Client, count: int) -> list[str]:
    found = sorted(one["metadata"]["name"] for one in await guest.list(k.DEPLOYMENTS, olm.NAMESPACE))
    return found if len(found) == count else []


async def _sources(guest: Client, wanted: dict[str, str]) -> bool:
    found = await guest.list(k.CATALOGSOURCES, olm.MARKETPLACE)
    return {one["metadata"]["name"]: one["spec"]["image"] for one in found} == wanted
