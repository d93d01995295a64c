"""Nodes of a hosted cluster, where nothing can be reached but a published registry with a password.

What they run comes from there: the parts of the release, images by other names, and operators out of a catalog that
was mirrored into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support import operators
from tests.support.e2e.catalogs import CSV, SOURCE, install, mirrored, mirrors, offered, ready, told
from tests.support.e2e.control_planes import NS, guest_of
from tests.support.e2e.hosted_tools import Guest
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.published_site import SOURCE as ELSEWHERE
from tests.support.e2e.published_site import Site, ended, site_with_published_images
from tests.support.eventually import eventually_sync
from tests.support.image_sets import content

from hcp import payload
from hcp.api import names
from hcp.guest import olm

NAME, CLUSTER = "publishvm", "one"
HOSTED = f"{NS}-{CLUSTER}"
REDHAT = "redhat-operators"
# OLM and a catalog are more than the small machines of other tests hold.
ROOMY_VM = ("--memory", "3Gi", "--cores", "2", "--root-volume-size", "16")

pytestmark = pytest.mark.timeout(4200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("publishvm")


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    payload.ensure(["release-1.36-olm"])
    with site_with_published_images(NAME, "kubevirt", folder, "1.36-olm") as made:
        access = ("--kubeconfig", str(made.cluster.kubeconfig))
        hcp(*made.published["install"][1:], *access, "--wait-until-available")
        yield made


@pytest.fixture(scope="module")
def resources(site: Site, folder: Path) -> Path:
    """What mirroring a catalog wrote; where it came from is gone."""
    return asyncio.run(mirrored(site.registry, folder))


@pytest.fixture(scope="module")
def guest(site: Site, folder: Path, resources: Path) -> Guest:
    access = ("--kubeconfig", str(site.cluster.kubeconfig))
    found = [{"source": one["source"], "mirrors": one["mirrors"]} for one in mirrors(resources)]
    listed = [{"source": ELSEWHERE, "mirrors": [f"{site.registry.host}/team/hcp"]}, *found]
    (folder / "mirrors.yaml").write_text(yaml.safe_dump(listed))
    hcp(
        *("create", "cluster", "kubevirt", "--name", CLUSTER, *access, *ROOMY_VM),
        *("--node-pool-replicas", "1", "--control-plane-availability-policy", "SingleReplica"),
        *("--pull-secret", str(site.login), "--additional-trust-bundle", str(site.ca)),
        *("--image-content-sources", str(folder / "mirrors.yaml"), "--wait", "--timeout", "30m"),
    )
    return guest_of(site.cluster, folder, CLUSTER)


def test_a_node_boots_and_runs_images_from_there(site: Site, guest: Guest) -> None:
    here = f"{site.registry.host}/team/hcp"
    assert len(guest.ready_nodes()) == 1
    pods = guest.get("pods", "-A")["items"]
    images = {one["image"] for pod in pods for one in pod["spec"]["containers"]}
    assert {image.rpartition("/")[0] for image in images} == {here}
    (etcd,) = [image for image in site.images(HOSTED) if "/etcd@" in image]
    assert ended(guest, etcd.replace(here, ELSEWHERE)) == "Succeeded"


def test_a_subscription_to_what_was_mirrored_ends_in_success(guest: Guest, resources: Path) -> None:
    spaces = {one["metadata"]["name"] for one in guest.get("namespaces")["items"]}
    assert olm.MARKETPLACE in spaces
    assert olm.NAMESPACE not in spaces, "nothing of OLM runs without a catalog"
    try:
        install(guest, resources)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{told(guest)}") from error


def test_a_catalog_beside_the_control_plane_serves_the_nodes(site: Site, guest: Guest) -> None:
    (digest,) = asyncio.run(content(site.registry, ["mirror/team/hello-index"])).values()
    image = f"{site.registry.host}/mirror/team/hello-index@{digest}"
    _annotate(site, f"{names.ANNOTATION_REDHAT_CATALOG_IMAGE}={image}")
    try:
        eventually_sync(lambda: ready(guest, REDHAT), "the catalog answers the guest", 900)
        eventually_sync(lambda: offered(guest, REDHAT) == [operators.PACKAGE], "what it offers", 600)
    except AssertionError as error:
        seen = site.cluster.kubectl("get", "pods,services,events", "-n", HOSTED)[-4000:]
        raise AssertionError(f"{error}\n{told(guest)}\n{seen}") from error
    pods = site.cluster.get("pods", "-n", HOSTED, "-l", f"{names.LABEL_CATALOG}={REDHAT}")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"]
    running = guest.get("pods", "-n", olm.MARKETPLACE, "-l", f"{names.LABEL_CATALOG}={REDHAT}")["items"]
    assert running == [], "nothing of it runs on the nodes"


def test_without_catalogs_and_operators_nothing_of_olm_is_left(site: Site, guest: Guest) -> None:
    _annotate(site, f"{names.ANNOTATION_REDHAT_CATALOG_IMAGE}-")
    guest.kubectl("delete", "catalogsource", SOURCE, "-n", olm.MARKETPLACE)
    eventually_sync(lambda: guest.get("catalogsource", "-A")["items"] == [], "no catalog is left", 300)
    phase = guest.get("csv", CSV, "-n", olm.OPERATORS)["status"]["phase"]
    assert phase == "Succeeded", "operators outlive their catalogs"
    guest.kubectl("delete", "subscription", "hello", "-n", olm.OPERATORS)
    guest.kubectl("delete", "csv", CSV, "-n", olm.OPERATORS)

    def spaces() -> set[str]:
        return {one["metadata"]["name"] for one in guest.get("namespaces")["items"]}

    eventually_sync(lambda: olm.NAMESPACE not in spaces(), "nothing of it runs any more", 900)
    assert "packages.operators.coreos.com" not in guest.kubectl("api-versions")
    assert site.cluster.get("deployments", "-n", HOSTED, "-l", names.LABEL_CATALOG)["items"] == []


def _annotate(site: Site, change: str) -> None:
    site.cluster.kubectl("annotate", "--overwrite", "hostedcluster", CLUSTER, "-n", NS, change)
