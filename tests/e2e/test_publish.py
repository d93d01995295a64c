"""A management cluster that reaches nothing but a registry which `hcp release push` filled."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.control_planes import NS, available, create, guest_of
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.own_machine import started
from tests.support.e2e.published_site import (
    SOURCE,
    Site,
    ended,
    renaming_mirror,
    running,
    site_with_published_images,
)
from tests.support.eventually import eventually_sync

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


def test_a_machine_pulls_from_there_and_by_other_names(site: Site, tmp_path: Path) -> None:
    access = ("--kubeconfig", str(site.cluster.kubeconfig))
    here = f"{site.registry.host}/team/hcp"
    hcp(
        *("create", "cluster", "none", "--name", "two", *access, "--node-pool-replicas", "1"),
        *("--control-plane-availability-policy", "SingleReplica", "--etcd-storage-size", "1Gi"),
        *("--pull-secret", str(site.login), "--additional-trust-bundle", str(site.ca)),
        *("--image-content-sources", str(renaming_mirror(tmp_path, here))),
    )
    hcp("wait", "cluster", "two", "--control-plane", "--timeout", "20m", *access)
    guest = guest_of(site.cluster, tmp_path, "two")
    drive = tmp_path / "drive.iso"
    words = ("create", "config-drive", "--nodepool", "two", "--hostname", "worker-1", "-o", str(drive), *access)
    eventually_sync(lambda: hcp(*words, check=False).returncode == 0, "the pool has a document", 300)
    with started(tmp_path, drive) as console:
        try:
            eventually_sync(lambda: guest.ready_nodes() == ["worker-1"], "the node is ready", 2400)
            eventually_sync(lambda: running(guest, "kube-system"), "what runs on every node", 900)
            (etcd,) = [image for image in site.images("clusters-two") if "/etcd@" in image]
            assert ended(guest, etcd.replace(here, SOURCE)) == "Succeeded"
        except AssertionError as error:
            said = guest.kubectl("get", "pods,events", "-A")[-4000:]
            raise AssertionError(f"{error}\n{said}\n{console.read_text(errors='replace')[-2000:]}") from error
        images = {one["image"] for pod in guest.get("pods", "-A")["items"] for one in pod["spec"]["containers"]}
        assert {image.rpartition("/")[0] for image in images} == {here, SOURCE}


def test_its_channel_is_read_from_the_graph_beside_the_release(site: Site) -> None:
    patch = json.dumps({"spec": {"channel": "stable-1.36"}})
    site.cluster.kubectl("patch", "hostedcluster", "one", "-n", NS, "--type", "merge", "-p", patch)
    told = "condition=ClusterVersionRetrievedUpdates"
    site.cluster.kubectl("wait", "hostedcluster", "one", "-n", NS, f"--for={told}", "--timeout=600s")
    version = site.cluster.get("hostedcluster", "one", "-n", NS)["status"]["version"]
    assert version["availableUpdates"] == [] and version["desired"]["channels"] == ["candidate-1.36", "stable-1.36"]
    access = ("--kubeconfig", str(site.cluster.kubeconfig), "--namespace", NS)
    assert "already" in hcp("upgrade", "cluster", "one", "--to", "latest", *access).stdout


def test_pushing_again_sends_nothing_and_says_the_same(site: Site) -> None:
    access = ("--ca", str(site.ca), "--authfile", str(site.login), "-o", "json")
    again = hcp("release", "push", f"docker://{site.registry.host}/team/hcp", *access)
    assert json.loads(again.stdout) == site.published
    assert "; 0 MiB were sent" in again.stderr


def test_what_is_pushed_is_signed_with_a_key_and_verified(site: Site, tmp_path: Path) -> None:
    key, public = tmp_path / "key.pem", tmp_path / "key.pub"
    make = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key)]
    subprocess.run(make, check=True, capture_output=True)
    subprocess.run(["openssl", "ec", "-in", str(key), "-pubout", "-out", str(public)], check=True, capture_output=True)
    access = ("--ca", str(site.ca), "--authfile", str(site.login))
    (release,) = site.published["releases"].values()
    assert hcp("release", "verify", release, "--key", str(public), *access, check=False).returncode == 1
    hcp("release", "push", f"docker://{site.registry.host}/team/hcp", *access, "--sign-key", str(key))
    for image in (release, site.published["operator"]):
        assert image.rpartition("@")[2] in hcp("release", "verify", image, "--key", str(public), *access).stdout
