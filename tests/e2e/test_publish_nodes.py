"""Nodes of a hosted cluster, where nothing can be reached but a published registry with a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.e2e.control_planes import guest_of
from tests.support.e2e.hosted_tools import SMALL_VM
from tests.support.e2e.local_tools import hcp
from tests.support.e2e.published_site import SOURCE, ended, renaming_mirror, site_with_published_images

NAME = "publishvm"

pytestmark = pytest.mark.timeout(4200)


def test_a_node_boots_and_runs_images_from_there(tmp_path: Path) -> None:
    with site_with_published_images(NAME, "kubevirt", tmp_path) as site:
        access = ("--kubeconfig", str(site.cluster.kubeconfig))
        here = f"{site.registry.host}/team/hcp"
        hcp(*site.published["install"][1:], *access, "--wait-until-available")
        hcp(
            *("create", "cluster", "kubevirt", "--name", "one", *access, *SMALL_VM, "--node-pool-replicas", "1"),
            *("--control-plane-availability-policy", "SingleReplica", "--pull-secret", str(site.login)),
            *("--image-content-sources", str(renaming_mirror(tmp_path, here))),
            *("--additional-trust-bundle", str(site.ca), "--wait", "--timeout", "30m"),
        )
        guest = guest_of(site.cluster, tmp_path, "one")
        assert len(guest.ready_nodes()) == 1
        pods = guest.get("pods", "-A")["items"]
        images = {one["image"] for pod in pods for one in pod["spec"]["containers"]}
        assert {image.rpartition("/")[0] for image in images} == {here}
        (etcd,) = [image for image in site.images("clusters-one") if "/etcd@" in image]
        assert ended(guest, etcd.replace(here, SOURCE)) == "Succeeded"
