"""Volumes on another infra cluster, whose owner has granted the guide's Role and no more: two API servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.support import guest_nodes
from tests.support import infra_ingress as support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import VMS
from tests.support.guides import documents
from tests.support.hosted_api import hosted_api
from tests.support.hosted_operator import Running, rests, says, told
from tests.support.registry import Registry

from hcp.csi.kubevirt import settings
from hcp.kube import Client
from hcp.kube import resources as k

NAME, NS = "far", "clusters-far"
IMAGES = (*s.COMPONENTS, "csi-external-provisioner", "csi-external-resizer", "kubevirt-csi-driver")
CONTROLLER = "kubevirt-csi-controller"
# What the guide's Role lacks.
LACKING = (
    *("list persistentvolumeclaims", "watch persistentvolumeclaims", "patch persistentvolumeclaims"),
    "create datavolumes/source.cdi.kubevirt.io",
    *(f"update virtualmachines/{verb}.subresources.kubevirt.io" for verb in ("addvolume", "removevolume")),
)


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3", IMAGES)


def printed() -> list[dict[str, object]]:
    """What the owner of the infra cluster gets to apply for the guide's account."""
    account = f"--user=system:serviceaccount:{VMS}:{documents.ACCOUNT}"
    words = [str(Path(sys.executable).parent / "hcp"), "rbac", "external-infra", f"--infra-namespace={VMS}", account]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [one for one in yaml.safe_load_all(done.stdout) if one]


async def test_missing_rights_are_named_while_the_rest_works_and_what_is_printed_is_enough(
    admin: Client,
    operator: Callable[[], Running],
    own_server: ApiServer,
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> None:
    operator()
    async with support.place(own_server, admin) as place:
        await place.granted()
        name = f"{NAME}-infra-credentials"
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "clusters"}}
        await admin.apply({**secret, "stringData": {"kubeconfig": place.kubeconfig}})
        credentials = {"infraNamespace": VMS, "infraKubeConfigSecret": {"name": name, "key": "kubeconfig"}}
        platform = {"type": "KubeVirt", "kubevirt": {"credentials": credentials}}
        async with hosted_api(admin, NAME, image, registry, tmp_path, bin_dir, platform=platform) as guest:
            no_node = lambda: told(admin, NAME, "StorageAvailable", "Unknown")  # noqa: E731
            await eventually(no_node, "nobody is asked for rights before somebody could use a volume")
            await guest_nodes.join(guest, "one")
            found = await eventually(lambda: told(admin, NAME, "StorageAvailable", "False", LACKING[0]), "what lacks")
            assert found["reason"] == "InfraRightsMissing"
            for words in (*LACKING, "hcp rbac external-infra", f"namespace {VMS}"):
                assert words in found["message"]
            assert "more (hcp" not in found["message"], "and nothing else"
            assert await says(admin, NAME, "Available", "True"), "all else works"
            assert await admin.get_or_none(k.DEPLOYMENTS, CONTROLLER, NS) is None, "it would fail again and again"
            await eventually(lambda: rests(admin, NAME), "asking again writes nothing")

            for one in printed():
                await place.admin.apply(one)
            live = await eventually(lambda: admin.get_or_none(k.DEPLOYMENTS, CONTROLLER, NS), "it goes on by itself")
            pod = live["spec"]["template"]["spec"]
            assert pod["automountServiceAccountToken"] is False, "the kubeconfig of the infra cluster is all it has"
            assert any("--infra-kubeconfig" in word for word in pod["containers"][0]["command"])
            written = await admin.get(k.CONFIGMAPS, "kubevirt-csi-config", NS)
            assert settings.parse(written["data"]["settings.json"]).namespace == VMS
            await s.report_ready(admin, NS)
            await guest_nodes.report_available(guest)
            words = "kubevirt-csi-infra-default (default)"
            await eventually(lambda: told(admin, NAME, "StorageAvailable", "True", words), "it works")
            await eventually(lambda: rests(admin, NAME), "a look that writes nothing")
