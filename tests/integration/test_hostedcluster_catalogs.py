"""A release with OLM: its kinds are in the guest from the start, its pods while there is a catalog or an operator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, mentions, rests
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry, push
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.guest import catalogs, keeper, olm
from hcp.hostedcluster import catalog_digests
from hcp.kube import Client, Resource, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.oci import client as oci_client
from hcp.oci.writer import ImageConfig, Layer, write_image

VERSIONS = k.CLUSTERSERVICEVERSIONS
GROUPS = Resource(olm.GROUP, "v1", "operatorgroups", "OperatorGroup")
KINDS = (k.CATALOGSOURCES, VERSIONS, GROUPS)
IMAGES = (*s.COMPONENTS, *catalogs.NEEDED)
DIGEST = "@sha256:" + "a" * 64
COMMUNITY = "team/community"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    listed = {"apiVersion": "v1", "kind": "List", "items": [open_crd(kind) for kind in KINDS]}
    return await s.push_release(registry, tmp_path, "1.36.3", IMAGES, OLM_DEFINITIONS=json.dumps(listed))


async def test_olm_runs_while_there_is_a_catalog_or_an_operator(
    admin: Client, pods: HostedPods, operator: Callable[[], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "ASK_STEADY", 1.0)
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

        # An operator outlives the catalog it came from, and so does what can take it away again.
        installed = {
            "apiVersion": VERSIONS.api_version,
            "kind": "ClusterServiceVersion",
            "metadata": {"name": "hello.v1", "namespace": olm.OPERATORS},
        }
        await guest.create(installed)
        await guest.delete(k.CATALOGSOURCES, "cs-mine", olm.MARKETPLACE)
        await guest.delete(k.DEPLOYMENTS, "olm-operator", olm.NAMESPACE)
        monkeypatch.setattr(keeper, "RESYNC", 0.0)
        await eventually(lambda: _deployments(guest, 2), "it is kept as it should be")
        await guest.delete(VERSIONS, "hello.v1", olm.OPERATORS)
        await eventually(lambda: _is_gone(guest, k.NAMESPACES, olm.NAMESPACE), "nothing of it runs")
        binding = f"olm-operator-binding-{olm.NAMESPACE}"
        await eventually(lambda: _is_gone(guest, k.CLUSTERROLEBINDINGS, binding), "nor has it any rights")
        await eventually(lambda: _no_versions(guest), "and no operator is left")

        await guest.create(mine)
        await eventually(lambda: _deployments(guest, 2), "it runs again")


async def test_default_sources_are_served_beside_the_control_plane(
    admin: Client,
    pods: HostedPods,
    operator: Callable[[], Running],
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog_digests, "FRESH", 0.0)
    monkeypatch.setattr(oci_client, "TAG_SECONDS", 0.0)
    first = await _catalog(registry, tmp_path, "one")
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        redhat = f"mirror.test:5000/here/redhat{DIGEST}"
        await _annotate(
            admin,
            {
                names.ANNOTATION_REDHAT_CATALOG_IMAGE: f"r.test/redhat{DIGEST}",
                names.ANNOTATION_COMMUNITY_CATALOG_IMAGE: f"{registry.host}/{COMMUNITY}:v1",
                names.ANNOTATION_CATALOG_REGISTRY_OVERRIDES: "r.test=mirror.test:5000/here",
            },
        )
        both = ("redhat-operators", "community-operators")
        await eventually(lambda: _served(admin, guest, *both), "sources have the addresses of Services")
        assert await admin.list(k.DEPLOYMENTS, NS, names.LABEL_CATALOG) == [], "nobody asks them before there is a node"
        await guest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}})
        await eventually(lambda: _run_of(admin, {both[0]: redhat, both[1]: first}), "each by the digest of its image")
        await eventually(lambda: rests(admin, NAME), "all is said")
        assert not await mentions(admin, NAME, "AllFieldsHonoured", "olmCatalogPlacement")

        second = await _catalog(registry, tmp_path, "two")
        await _annotate(admin, {"example.com/look": "once"})
        await eventually(lambda: _run_of(admin, {both[0]: redhat, both[1]: second}), "a new image under the same tag")

        off = {"disableAllDefaultSources": True, "sources": [{"name": "redhat-operators", "disabled": False}]}
        await _configure(admin, off)
        await eventually(lambda: _served(admin, guest, both[0]), "all but one are off")
        await eventually(lambda: _run_of(admin, {both[0]: redhat}), "and do not run")
        # What a tenant deletes of ours comes back.
        await guest.delete(k.CATALOGSOURCES, both[0], olm.MARKETPLACE)
        await eventually(lambda: _served(admin, guest, both[0]), "it is there again")
        await eventually(lambda: rests(admin, NAME), "nothing is on its way")
        before = len(Running.latest.writes)
        redhat = redhat.replace("aaaa", "bbbb")
        await _annotate(admin, {names.ANNOTATION_REDHAT_CATALOG_IMAGE: redhat})
        await eventually(lambda: _run_of(admin, {both[0]: redhat}), "another image")
        kinds = ("deployments", "services", "networkpolicies", "catalogsources")
        written = [one for one in Running.latest.writes[before:] if any(kind in one for kind in kinds)]
        assert len(written) == 1 and "deployments" in written[0], written

        # Machines that are on other networks only cannot reach a Service here.
        pool = crds_support.rendered_pool("clusters", NAME)
        pool["spec"]["clusterName"] = NAME
        pool["spec"]["platform"]["kubevirt"] |= {
            "attachDefaultNetwork": False,
            "additionalNetworks": [{"name": "lab/net"}],
        }
        await admin.create(pool)
        await eventually(lambda: mentions(admin, NAME, "AllFieldsHonoured", "not attached to the pod network"), "said")
        await eventually(lambda: _inside(guest, {both[0]: redhat}), "the catalog is in the guest")
        await eventually(lambda: _run_of(admin, {}), "and nowhere else")
        await admin.delete(k.NODEPOOLS, NAME, "clusters")


async def _catalog(registry: Registry, folder: Path, content: str) -> str:
    """Pushes a new image under the same tag; gives it by digest."""
    layer = Layer("a catalog")
    layer.file("configs/catalog.json", content.encode())
    made = write_image(folder / content, COMMUNITY, [layer], ImageConfig())
    return f"{registry.host}/{COMMUNITY}@{await push(registry, made.path, COMMUNITY, 'v1')}"


async def _annotate(admin: Client, annotations: dict[str, str]) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"metadata": {"annotations": annotations}})


async def _configure(admin: Client, hub: dict[str, Any]) -> None:
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"configuration": {"operatorhub": hub}}})


async def _deployments(guest: Client, count: int) -> list[str]:
    found = sorted(one["metadata"]["name"] for one in await guest.list(k.DEPLOYMENTS, olm.NAMESPACE))
    return found if len(found) == count else []


async def _is_gone(guest: Client, resource: Resource, name: str) -> bool:
    return await guest.get_or_none(resource, name) is None


async def _no_versions(guest: Client) -> bool:
    return await guest.list(VERSIONS) == []


async def _served(admin: Client, guest: Client, *sources: str) -> bool:
    """Whether the guest has these sources, each with the address of its Service here."""
    services = {one["metadata"]["name"]: one for one in await admin.list(k.SERVICES, NS, names.LABEL_CATALOG)}
    if set(services) != set(sources):
        return False
    wanted = {name: f"{one['spec']['clusterIP']}:50051" for name, one in services.items()}
    found = await guest.list(k.CATALOGSOURCES, olm.MARKETPLACE)
    return {one["metadata"]["name"]: one["spec"].get("address") for one in found} == wanted


async def _inside(guest: Client, wanted: dict[str, str]) -> bool:
    found = await guest.list(k.CATALOGSOURCES, olm.MARKETPLACE)
    known = {one["metadata"]["name"]: one["spec"] for one in found}
    return {name: spec.get("image") for name, spec in known.items()} == wanted and not any(
        "address" in spec for spec in known.values()
    )


async def _run_of(admin: Client, wanted: dict[str, str]) -> bool:
    found = await admin.list(k.DEPLOYMENTS, NS, names.LABEL_CATALOG)
    images = {one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]["image"] for one in found}
    return images == {f"{source}-catalog": image for source, image in wanted.items()}
