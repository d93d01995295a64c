"""A management cluster that has nothing but a registry which `hcp release push` filled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.published_site import Site, site_with_published_images

NAME = "publish"

pytestmark = pytest.mark.timeout(3000)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_with_published_images(NAME, "cluster", tmp_path_factory.mktemp("publish")) as made:
        yield made


def test_the_printed_line_installs_the_operator_from_there(site: Site) -> None:
    words = site.published["install"]
    assert words[0] == "hcp"
    hcp(*words[1:], "--kubeconfig", str(site.cluster.kubeconfig), "--wait-until-available")
    found = site.images("hypershift")
    assert site.published["operator"] in found
    assert {image.partition("/")[0] for image in found} == {site.registry.host}


def test_installing_again_keeps_what_was_published(site: Site) -> None:
    before = site.cluster.get("deployment", "operator", "-n", "hypershift")
    hcp("install", "--kubeconfig", str(site.cluster.kubeconfig), "--wait-until-available")
    after = site.cluster.get("deployment", "operator", "-n", "hypershift")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    known = site.cluster.get("configmap", "supported-versions", "-n", "hypershift")["data"]
    assert known["default-release"] in site.published["releases"].values()
    assert json.loads(known["supported-versions"]) == {"versions": ["1.36"]}


def test_a_hosted_cluster_becomes_available_from_there(site: Site, tmp_path: Path) -> None:
    (release,) = site.published["releases"].values()
    more = ("--release-image", release, "--pull-secret", str(site.login), "--additional-trust-bundle", str(site.ca))
    create(site.cluster, tmp_path, "one", *more)
    available(site.cluster, "one")
    found = site.images(f"{NS}-one")
    assert len(found) >= 4
    assert {image.rpartition("/")[0] for image in found} == {f"{site.registry.host}/team/hcp"}
    names = {n["metadata"]["name"] for n in guest_of(site.cluster, tmp_path, "one").get("namespaces")["items"]}
    assert {"default", "kube-system"} <= names


def test_pushing_again_sends_nothing_and_says_the_same(site: Site) -> None:
    access = ("--ca", str(site.ca), "--authfile", str(site.login), "-o", "json")
    again = hcp("release", "push", f"docker://{site.registry.host}/team/hcp", *access)
    assert json.loads(again.stdout) == site.published
    assert "; 0 MiB were sent" in again.stderr
