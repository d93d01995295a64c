"""A management cluster that has nothing but a registry which `hcp release push` filled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.elsewhere import registry_elsewhere, trust_only
from tests.support.e2e.local_tools import Cluster, hcp
from tests.support.registry import Registry

NAME = "publish"

pytestmark = pytest.mark.timeout(3000)


@dataclass
class Site:
    """The cluster, the registry, and what a person has in files."""

    cluster: Cluster
    registry: Registry
    ca: Path
    login: Path
    published: dict[str, Any]

    def images(self, namespace: str) -> set[str]:
        pods = self.cluster.get("pods", "-n", namespace)["items"]
        return {
            one["image"] for pod in pods for one in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("publish")
    with registry_elsewhere(folder) as registry:
        ca, login = folder / "ca.pem", folder / "auth.json"
        ca.write_bytes(registry.ca_pem)
        login.write_text(json.dumps(registry.auths))
        access = ("--ca", str(ca), "--authfile", str(login), "-o", "json")
        published = json.loads(hcp("release", "push", f"docker://{registry.host}/team/hcp", *access).stdout)
        hcp("local", "up", "--name", NAME, "--profile", "cluster")
        try:
            cluster = Cluster(NAME, folder)
            trust_only(NAME, registry, folder)
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
            yield Site(cluster, registry, ca, login, published)
        finally:
            hcp("local", "down", "--name", NAME, "--purge")


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
