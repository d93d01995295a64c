"""A release with storage: classes inside from the start, the driver beside the control plane from the first node on."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import guest_nodes
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, hands, mentions, rests, says, told
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.storage_plan import DEFAULT_CLASS
from hcp.csi.kubevirt import DRIVER, settings
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.errors import Forbidden, Invalid

IMAGES = (*s.COMPONENTS, "csi-external-provisioner", "csi-external-resizer", "kubevirt-csi-driver")
CONTROLLER, NODE = "kubevirt-csi-controller", "kubevirt-csi-node"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3", IMAGES)


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        await crds_support.install(client, [open_crd(k.STORAGEPROFILES)])
        await client.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "infra", "annotations": {DEFAULT_CLASS: "true"}},
                "provisioner": "infra.example.com",
                "allowVolumeExpansion": True,
            }
        )
        yield client


async def there(client: Client, resource: k.Resource, name: str, ns: str | None = None) -> Any:
    return await client.get_or_none(resource, name, ns)


async def reason(client: Client) -> str:
    return str((await s.condition(client, NAME, "StorageAvailable")).get("reason"))


async def test_storage_comes_with_the_first_node_and_an_idle_one_writes_nothing(
    admin: Client, pods: HostedPods, operator: Callable[[], Running]
) -> None:
    config = untrusted_kubeconfig.load(await kubeconfig(admin))
    async with Client(config) as guest:
        made = await eventually(
            lambda: there(guest, k.STORAGECLASSES, "kubevirt-csi-infra-default"), "the guest's default class"
        )
        assert made["provisioner"] == DRIVER and made["allowVolumeExpansion"] is True
        assert made["metadata"]["annotations"][DEFAULT_CLASS] == "true"
        await eventually(lambda: there(guest, k.CSIDRIVERS, DRIVER), "the driver's own object")
        await eventually(lambda: there(guest, k.DAEMONSETS, NODE, "kube-system"), "its side on nodes")
        await eventually(lambda: _is(admin, "NoWorkerNodesAvailable"), "no node yet")
        assert await there(admin, k.DEPLOYMENTS, CONTROLLER, NS) is None, "nobody can use a volume yet"
        assert await there(admin, k.SERVICEACCOUNTS, names.CSI_ACCOUNT, NS) is None

        await guest_nodes.join(guest, "one")
        live = await eventually(lambda: there(admin, k.DEPLOYMENTS, CONTROLLER, NS), "the controller")
        pod = live["spec"]["template"]["spec"]
        assert [one["name"] for one in pod["containers"]] == ["csi-driver", "csi-provisioner", "csi-resizer"]
        bound = await there(admin, k.ROLEBINDINGS, names.CSI_ACCOUNT, NS)
        assert bound["roleRef"]["name"] == names.hosted_role(names.CSI_ACCOUNT)
        written = await admin.get(k.CONFIGMAPS, "kubevirt-csi-config", NS)
        known = settings.parse(written["data"]["settings.json"])
        assert (known.namespace, known.default and known.default.name, known.classes) == (NS, "infra", {})

        await eventually(lambda: _is(admin, "WaitingForAvailable"), "what is there and does not run yet")
        await s.report_ready(admin, NS)
        await guest_nodes.report_available(guest)
        words = "kubevirt-csi-infra-default (default)"
        await eventually(lambda: told(admin, NAME, "StorageAvailable", "True", words), "it works")
        await _what_the_driver_may_do_in_the_guest(admin, config.server)

        # What the tenant decides about its default class stays.
        no = {"metadata": {"annotations": {DEFAULT_CLASS: "false"}}}
        await guest.patch(k.STORAGECLASSES, "kubevirt-csi-infra-default", None, no)
        await eventually(lambda: rests(admin, NAME), "a look that writes nothing")
        assert await told(admin, NAME, "StorageAvailable", "True", words), "and it stays so"
        kept = await guest.get(k.STORAGECLASSES, "kubevirt-csi-infra-default")
        assert kept["metadata"]["annotations"][DEFAULT_CLASS] == "false"


async def _is(client: Client, wanted: str) -> bool:
    return await reason(client) == wanted


async def _what_the_driver_may_do_in_the_guest(admin: Client, server: str) -> None:
    secret = await admin.get(k.SECRETS, "kubevirt-csi-kubeconfig", NS)
    text = base64.b64decode(secret["data"]["kubeconfig"]).decode()
    address = at(await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters"), "status.controlPlaneEndpoint")
    inner = untrusted_kubeconfig.load(text.replace("https://kube-apiserver:", f"https://{address['host']}:").encode())
    assert str(address["port"]) in server
    async with Client(inner) as driver:
        assert await driver.list(k.VOLUMEATTACHMENTS) == []
        assert await driver.list(k.PVCS) == []
        for resource in (k.SECRETS, k.CONFIGMAPS, k.CLUSTERROLES):
            with pytest.raises(Forbidden):
                await driver.list(resource)


async def test_a_changed_mapping_is_followed_by_classes_and_driver(
    admin: Client, pods: HostedPods, operator: Callable[[], Running]
) -> None:
    plain = {"metadata": {"name": "plain"}, "provisioner": "plain.example.com", "allowVolumeExpansion": False}
    await admin.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **plain})
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await eventually(lambda: _guest_classes(guest, {"kubevirt-csi-infra-default": ""}), "nothing is mapped")
        await guest_nodes.join(guest, "one")
        await eventually(lambda: there(admin, k.DEPLOYMENTS, CONTROLLER, NS), "the controller")
        own = {"metadata": {"name": "mine"}, "provisioner": DRIVER, "reclaimPolicy": "Retain"}
        await guest.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **own})

        # Who said nothing may map classes later, and change that as often as it takes.
        await _map(admin, {"gold": "infra", "tin": "plain"})
        wanted = {"gold": "infra", "tin": "plain", "mine": ""}
        await eventually(lambda: _guest_classes(guest, wanted), "the mapped classes instead")
        await eventually(lambda: _driver_knows(admin, {"infra", "plain"}), "the driver may use them")
        gold, tin = [await guest.get(k.STORAGECLASSES, name) for name in ("gold", "tin")]
        assert (gold["allowVolumeExpansion"], tin["allowVolumeExpansion"]) == (True, False)
        assert gold["metadata"]["annotations"][DEFAULT_CLASS] == "true", "the infra cluster's default"
        template = (await admin.get(k.DEPLOYMENTS, CONTROLLER, NS))["spec"]["template"]

        await _map(admin, {"gold": "infra", "tin": "infra"})
        wanted["tin"] = "infra"
        await eventually(lambda: _guest_classes(guest, wanted), "tin means something else")
        await eventually(lambda: _driver_knows(admin, {"infra"}), "the driver may not use the other one any more")
        assert (await guest.get(k.STORAGECLASSES, "tin"))["allowVolumeExpansion"] is True
        assert (await guest.get(k.STORAGECLASSES, "gold"))["metadata"]["uid"] == gold["metadata"]["uid"], "untouched"
        # It reads its settings when it starts.
        assert (await admin.get(k.DEPLOYMENTS, CONTROLLER, NS))["spec"]["template"] != template

        await _map(admin, {"tin": "infra"})
        await eventually(lambda: _guest_classes(guest, {"tin": "infra", "mine": ""}), "gold goes, theirs stays")
        await eventually(lambda: rests(admin, NAME), "a look that writes nothing")
        with pytest.raises(Invalid, match=r"storageDriver\.type is immutable"):
            await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", _driver({"type": "Default", "manual": None}))


def _driver(value: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"platform": {"kubevirt": {"storageDriver": value}}}}


async def _map(admin: Client, classes: dict[str, str]) -> None:
    """Classes of the guest, and what they are in the infra cluster."""
    mapping = [{"guestStorageClassName": guest, "infraStorageClassName": infra} for guest, infra in classes.items()]
    body = _driver({"type": "Manual", "manual": {"storageClassMapping": mapping}})
    await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", body)


async def _guest_classes(guest: Client, wanted: dict[str, str]) -> bool:
    found = await guest.list(k.STORAGECLASSES)
    return {o["metadata"]["name"]: at(o, f"parameters.{settings.CLASS_PARAMETER}") or "" for o in found} == wanted


async def _driver_knows(admin: Client, wanted: set[str]) -> bool:
    written = await admin.get(k.CONFIGMAPS, "kubevirt-csi-config", NS)
    return set(settings.parse(written["data"]["settings.json"]).classes) == wanted


async def test_a_mapped_class_that_does_not_exist_is_named_and_none_means_none(
    admin: Client, operator: Callable[[], Running], image: str, registry: Registry
) -> None:
    operator()
    mapping = [{"infraStorageClassName": "nope", "guestStorageClassName": "gold"}]
    driver = {"type": "Manual", "manual": {"storageClassMapping": mapping}}
    for name, wanted in (("mapped", driver), ("bare", {"type": "None"})):
        platform = {"type": "KubeVirt", "kubevirt": {"storageDriver": wanted}}
        await s.create(admin, name, image, registry, platform=platform)
    for name in ("mapped", "bare"):
        await eventually(lambda name=name: says(admin, name, "AllFieldsHonoured", "True"), "nothing is in vain")  # type: ignore[misc]
    given = hands(admin, "clusters-mapped")
    missing = lambda: told(admin, "mapped", "StorageAvailable", "False", "no StorageClass nope")  # noqa: E731
    await eventually(missing, "it is told", given)
    assert await s.condition(admin, "bare", "StorageAvailable") == {}


async def test_a_release_without_storage_costs_nothing_and_says_so_to_who_asks(
    admin: Client, operator: Callable[[], Running], registry: Registry, tmp_path: Path
) -> None:
    operator()
    plain = await s.push_release(registry, tmp_path, "1.36.2")
    asked = {"type": "KubeVirt", "kubevirt": {"storageDriver": {"type": "Default"}}}
    await s.create(admin, "asks", plain, registry, platform=asked)
    await s.create(admin, "quiet", plain, registry)
    given = hands(admin, "clusters-asks")
    lacking = lambda: told(admin, "asks", "StorageAvailable", "False", "csi-external-provisioner")  # noqa: E731
    await eventually(lacking, "it is told", given)
    in_vain = lambda: mentions(admin, "asks", "AllFieldsHonoured", "platform.kubevirt.storageDriver.type")  # noqa: E731
    await eventually(in_vain, "and which field is in vain")
    await eventually(lambda: says(admin, "quiet", "AllFieldsHonoured", "True"), "nobody asked here")
    assert await s.condition(admin, "quiet", "StorageAvailable") == {}
