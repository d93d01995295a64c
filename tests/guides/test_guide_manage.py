"""Working with a hosted cluster: access, volumes, the image cache, node pools from YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.e2e.hosted_tools import Guest
from tests.support.eventually import eventually_sync
from tests.support.guides import documents
from tests.support.guides.clusters import Hosted
from tests.support.guides.shell import Shell

from hcp.runtime import quantity

pytestmark = pytest.mark.timeout(3600)


def items(terminal: Shell, what: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(terminal.run(f"oc get {what} -o json"))["items"]
    return found


def test_access_by_the_secret(terminal: Shell, example: Hosted, guest: Guest) -> None:
    for secret in (
        f"{example.namespace}-{example.name}-admin-kubeconfig",
        f"{example.name}-admin-kubeconfig",
    ):
        terminal.run(
            f"oc -n {example.namespace} get secret {secret} -o jsonpath='{{.data.kubeconfig}}'"
            f" | base64 -d > {example.name}.kubeconfig"
        )
        found = terminal.run(f"oc --kubeconfig {example.name}.kubeconfig get nodes --no-headers")
        assert len(found.splitlines()) == example.workers


def test_access_by_the_command_line(terminal: Shell, example: Hosted, guest: Guest) -> None:
    name = example.name
    terminal.run(f"hcp create kubeconfig --namespace {example.namespace} --name {name} > {name}.kubeconfig")
    assert terminal.run(f"oc --kubeconfig {name}.kubeconfig get nodes --no-headers").count("Ready") == example.workers


def test_volumes_have_the_classes_asked_for(terminal: Shell, example: Hosted, guest: Guest) -> None:
    claims = {item["metadata"]["name"]: item["spec"] for item in items(terminal, f"pvc -n {example.control_plane}")}
    cluster = json.loads(terminal.run(f"oc -n {example.namespace} get hc {example.name} -o json"))["spec"]
    wanted = cluster["etcd"]["managed"]["storage"]["persistentVolume"]["storageClassName"]
    assert claims["data-etcd-0"]["storageClassName"] == wanted
    machines = [item["metadata"]["name"] for item in items(terminal, f"vm -n {example.control_plane}")]
    disks = [spec for name, spec in claims.items() if any(name.startswith(machine) for machine in machines)]
    assert len(disks) == example.workers
    for spec in disks:
        assert spec["storageClassName"] == wanted
        # CDI adds what a file system needs on top.
        size, asked = quantity.parse(spec["resources"]["requests"]["storage"]), quantity.parse("16Gi")
        assert size is not None and asked is not None and size >= asked


def test_the_image_is_imported_once_and_cloned(terminal: Shell, example: Hosted, guest: Guest) -> None:
    role = "hypershift.openshift.io/kubevirt-boot-image-role=kv-boot-image-cache"
    [cache] = items(terminal, f"datavolume -n {example.control_plane} -l {role}")
    assert cache["status"]["phase"] == "Succeeded"
    assert "registry" in cache["spec"]["source"]
    for machine in items(terminal, f"vm -n {example.control_plane}"):
        [template] = machine["spec"]["dataVolumeTemplates"]
        assert template["spec"]["source"]["pvc"]["name"] == cache["metadata"]["name"]


def test_a_node_pool_from_yaml_adds_nodes(terminal: Shell, example: Hosted, guest: Guest) -> None:
    pool = documents.node_pool(
        example.name, example.namespace, name="more", cores=1, memory="2Gi", replicas=1, size="16Gi"
    )
    terminal.run("oc apply -f -", stdin=documents.text(pool))
    try:
        terminal.run(f"hcp wait nodepool more --namespace {example.namespace} --timeout 25m", seconds=1600)
        label = "hypershift.openshift.io/nodePool=more"
        [node] = guest.get("nodes", "-l", label)["items"]
        [other, *_] = [n for n in guest.get("nodes")["items"] if n["metadata"]["name"] != node["metadata"]["name"]]
        # It names no release: it has the cluster's.
        assert node["status"]["nodeInfo"]["kubeletVersion"] == other["status"]["nodeInfo"]["kubeletVersion"]
        terminal.run(f"oc -n {example.namespace} scale nodepool more --replicas=0")
        eventually_sync(lambda: not guest.get("nodes", "-l", label)["items"], "the node is gone", 600)
    finally:
        terminal.run(f"hcp destroy nodepool --name more --namespace {example.namespace} --wait", seconds=900)


def test_a_gpu_that_is_not_there_is_said(terminal: Shell, example: Hosted) -> None:
    pool = documents.node_pool(
        example.name, example.namespace, name="gpu", memory="2Gi", replicas=0, devices=[("nvidia-a100", 2)]
    )
    terminal.run("oc apply -f -", stdin=documents.text(pool))
    query = '{.status.conditions[?(@.type=="ValidPlatformConfig")].message}'
    line = f"oc -n {example.namespace} get nodepool gpu -o jsonpath='{query}'"
    try:
        eventually_sync(lambda: "nvidia-a100" in terminal.run(line), "the missing device is named", 300)
    finally:
        terminal.run(f"hcp destroy nodepool --name gpu --namespace {example.namespace} --wait", seconds=600)
