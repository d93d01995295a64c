"""Add-ons as pure builders, and the judgement whether they are ready."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.local.addons import config, disks, dns, emulation, policy, router, storage, virtualization, waiting
from hcp.local.addons.virtualization_steps import for_now, is_deployed
from hcp.local.network.addresses import Addresses
from hcp.local.network.loadbalancer import is_ours, wanted_address
from hcp.local.state.request import UpRequest

PLAN = Addresses(2)


def test_every_object_is_named_and_namespaced() -> None:
    found = [
        *dns.objects(PLAN, "i@sha256:1", forward=True),
        *policy.objects(PLAN, "i@sha256:1"),
        *storage.objects("i@sha256:1", "h@sha256:2"),
        *disks.objects({name.removeprefix("image-"): "i@sha256:1" for name in disks.IMAGES}, several=True),
        *config.objects(PLAN, "PEM"),
        *config.definitions(),
    ]
    names = [(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in found]
    assert len(set(names)) == len(names)
    for obj in found:
        if obj["kind"] in waiting.WORKLOADS:
            template = obj["spec"]["template"]
            assert obj["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
            assert "@sha256:" in template["spec"]["containers"][0]["image"]


def test_what_there_is_one_of_stays_when_another_node_goes() -> None:
    """None of it would be made anew elsewhere: tolerating everything, its pod would wait for its node."""
    found = [
        *dns.objects(PLAN, "i", forward=True),
        *storage.objects("i", "h"),
        *router.objects(PLAN, "i"),
        *disks.objects({name.removeprefix("image-"): "i" for name in disks.IMAGES}, several=True),
    ]
    placed = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"].get("nodeSelector")
        for obj in found
        if obj["kind"] == "Deployment"
    }
    names = ("coredns", "local-path-provisioner", "router-default", "local-storage", "snapshot-controller")
    assert placed == {name: {waiting.CONTROL_PLANE_LABEL: ""} for name in names}


def test_corefile_answers_apps_domains_of_any_cluster() -> None:
    text = dns.corefile(PLAN, forward=False)
    pattern = re.search(r'match "(.*)"', text)
    assert pattern
    match = re.match(pattern.group(1).replace("(?P<", "(?P<"), "console.apps.10-88-7-64.hcp.test.")
    assert match
    assert [match.group(name) for name in "abcd"] == ["10", "88", "7", "64"]
    assert not re.match(pattern.group(1), "registry.hcp.test.")
    assert "10.88.2.3 registry.hcp.test" in text
    assert "forward" not in text
    assert "forward . /etc/resolv.conf" in dns.corefile(PLAN, forward=True)


def test_published_facts() -> None:
    found = {obj["kind"]: obj for obj in config.objects(PLAN, "PEM")}
    assert found["Network"]["spec"]["clusterNetwork"] == [{"cidr": "10.162.0.0/16", "hostPrefix": 20}]
    assert found["Network"]["status"] == found["Network"]["spec"]
    assert found["Ingress"]["spec"] == {"domain": "apps.10-88-2-64.hcp.test"}
    assert found["ConfigMap"]["data"] == {"registry.hcp.test..5000": "PEM"}
    assert found["Image"]["spec"]["additionalTrustedCA"]["name"] == found["ConfigMap"]["metadata"]["name"]


def test_storage_class_is_the_default() -> None:
    (found,) = [obj for obj in storage.objects("i", "h") if obj["kind"] == "StorageClass"]
    assert found["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
    (settings,) = [obj for obj in storage.objects("i", "h") if obj["kind"] == "ConfigMap"]
    assert json.loads(settings["data"]["config.json"])["sharedFileSystemPath"] == storage.FOLDER


@pytest.mark.parametrize("emulation", [True, False])
def test_kubevirt_says_how_machines_run(emulation: bool) -> None:
    developer = virtualization.kubevirt(emulation=emulation)["spec"]["configuration"]["developerConfiguration"]
    assert developer.get("useEmulation", False) is emulation


def test_emulated_processors_lose_only_what_is_slow_in_emulation() -> None:
    policy, binding = emulation.without_slow_instructions()
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    (mutation,) = policy["spec"]["mutations"]
    for slow in emulation.SLOW:
        assert json.dumps({"name": slow, "policy": "disable"}) in mutation["jsonPatch"]["expression"]


def test_parts_of_kubevirt_are_asked_every_second_only_until_they_have_begun() -> None:
    customized = virtualization.kubevirt(emulation=True)["spec"]["customizeComponents"]["patches"]
    assert [(one["resourceType"], one["resourceName"]) for one in customized] == [
        ("Deployment", "virt-api"),
        ("Deployment", "virt-controller"),
        ("DaemonSet", "virt-handler"),
    ]
    for one in customized:
        (container,) = json.loads(one["patch"])["spec"]["template"]["spec"]["containers"]
        assert container["name"] == one["resourceName"]
        assert container["startupProbe"]["periodSeconds"] == 1
        assert container["readinessProbe"] == {"initialDelaySeconds": 0}


DAEMON_READY = {"desiredNumberScheduled": 1, "numberReady": 1, "updatedNumberScheduled": 1}


def test_operators_are_cut_to_one_patient_pod() -> None:
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: cdi-operator}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - name: o
        image: i@sha256:1
        env: [{name: OVIRT_POPULATOR_IMAGE, value: ""}, {name: OTHER, value: ""}]
        livenessProbe: {httpGet: {port: 1}, timeoutSeconds: 10}
---
---
kind: Namespace
"""
    deployment, other = virtualization.documents(text)
    assert other == {"kind": "Namespace"}
    assert deployment["spec"]["replicas"] == 1
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert [item["value"] for item in container["env"]] == ["i@sha256:1", ""]
    assert container["livenessProbe"]["timeoutSeconds"] == 30
    assert container["livenessProbe"]["failureThreshold"] == 10


def test_trouble_is_told_in_the_kubelets_words() -> None:
    pod = {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no route"}}}]}}
    assert waiting.trouble_of([pod]) == "ErrImagePull: no route"
    pending = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "too many pods"}]}}
    assert waiting.trouble_of([pending]) == "too many pods"
    assert waiting.trouble_of([]) == "no pod exists"


def test_deployed_needs_the_condition_too() -> None:
    assert not is_deployed({})
    assert not is_deployed({"status": {"phase": "Deployed"}})
    assert is_deployed({"status": {"phase": "Deployed", "conditions": [{"type": "Available", "status": "True"}]}})


def service(asked: str = "", has: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"spec": {"type": "LoadBalancer"}, "status": {}}
    if asked:
        found["spec"]["loadBalancerIP"] = asked
    if has:
        found["status"] = {"loadBalancer": {"ingress": [{"ip": has}]}}
    return found


ADDRESSES = st.integers(64, 127).map(lambda number: f"10.88.2.{number}")


@given(st.sets(ADDRESSES), ADDRESSES, ADDRESSES)
def test_no_address_is_given_twice(taken: set[str], asked: str, has: str) -> None:
    for candidate in (service(), service(asked), service(asked, has)):
        found = wanted_address("a/b", candidate, PLAN.load_balancers, PLAN.router, taken)
        assert found not in taken
        assert found != PLAN.router
        assert found is not None or len(taken | {PLAN.router}) == 64


def test_addresses_stay_and_wishes_count() -> None:
    def wanted(key: str, obj: dict[str, Any], *taken: str) -> str | None:
        return wanted_address(key, obj, PLAN.load_balancers, PLAN.router, taken)

    assert wanted("a/b", service(has="10.88.2.99")) == "10.88.2.99"
    assert wanted("a/b", service(asked="10.88.2.99")) == "10.88.2.99"
    assert wanted("a/b", service(asked="1.2.3.4")) == "10.88.2.65"
    assert wanted("a/b", service(asked="nonsense")) == "10.88.2.65"
    assert wanted("a/b", service(), "10.88.2.65") == "10.88.2.66"
    assert wanted("openshift-ingress/router-default", service(asked=PLAN.router)) == PLAN.router
    assert wanted("tenant/greedy", service(asked=PLAN.router)) == "10.88.2.65"


def test_services_of_another_class_are_left_alone() -> None:
    assert is_ours(service())
    assert not is_ours({"spec": {"type": "LoadBalancer", "loadBalancerClass": "other"}})
    assert not is_ours({"spec": {"type": "ClusterIP"}})


def test_releases_are_pushed_where_nodes_can_run() -> None:
    assert UpRequest().releases_for("cluster") == ()
    assert UpRequest().releases_for("kubevirt") == ("1.36",)
    assert UpRequest(releases=()).releases_for("kubevirt") == ()
    assert UpRequest(releases=("1.35",)).releases_for("cluster") == ("1.35",)


def default_classes(found: list[dict[str, Any]]) -> dict[str, str]:
    return {
        obj["metadata"]["name"]: obj["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"]
        for obj in found
        if obj["kind"] == "StorageClass"
    }


def test_there_is_one_default_class() -> None:
    images = {name.removeprefix("image-"): "i@sha256:1" for name in disks.IMAGES}
    assert default_classes(storage.objects("i", "h")) == {"local-path": "true"}
    with_storage = [*storage.objects("i", "h", default=False), *disks.objects(images)]
    assert default_classes(with_storage) == {"local-path": "false", "hcp-local": "true"}


def test_only_the_driver_is_privileged() -> None:
    images = {name.removeprefix("image-"): "i@sha256:1" for name in disks.IMAGES}
    for obj in disks.objects(images):
        if obj["kind"] != "Deployment":
            continue
        for container in obj["spec"]["template"]["spec"]["containers"]:
            security = container["securityContext"]
            assert security.get("privileged", False) == (container["name"] == "driver")
            assert container["name"] == "driver" or security["capabilities"] == {"drop": ["ALL"]}


def test_cdi_clones_by_the_driver_and_shares() -> None:
    spec = disks.profile()["spec"]
    assert spec["cloneStrategy"] == "csi-clone"
    assert {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"} in spec["claimPropertySets"]


@pytest.mark.parametrize("phase", [None, "", "Deploying", "Deployed"])
def test_only_a_new_kubevirt_begins_without_types_of_instances(phase: str | None) -> None:
    """Where they are already, machines may be of one of them."""

    class There:
        async def get_or_none(self, *_: object) -> dict[str, Any] | None:
            return None if phase is None else {"status": {"phase": phase}}

    wanted = virtualization.kubevirt(emulation=True)
    assert "commonInstancetypesDeployment" not in wanted["spec"]["configuration"]
    found = asyncio.run(for_now(There(), wanted))  # type: ignore[arg-type]
    if phase == "Deployed":
        assert found == wanted
        return
    assert found["spec"]["configuration"].pop("commonInstancetypesDeployment") == {"enabled": False}
    assert found == wanted, "nothing else is another one"
