"""What a VM JSON patch may do, and what it may not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.errors import HcpError
from hcp.nodepool import patch_types
from hcp.nodepool.patching import patched
from hcp.nodepool.template import TemplateInput, _virtual_machine_template

VMI = "/spec/template/spec"
GIVEN = TemplateInput(
    node_pool="pool",
    infra_id="demo-abc",
    platform={"additionalNetworks": [{"name": "vms/net"}], "hostDevices": [{"deviceName": "gpu", "count": 1}]},
    source={"registry": {"url": "docker://r.test/disk"}},
    infra_namespace="vms",
)


def machine() -> dict[str, Any]:
    return _virtual_machine_template(GIVEN)


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def after(*operations: dict[str, Any]) -> Any:
    return patched(machine(), (json.dumps(operations),))


ALLOWED: list[tuple[str, Any]] = [
    ("/domain/cpu/model", "host-passthrough"),
    ("/domain/cpu/features", [{"name": "vmx", "policy": "require"}]),
    ("/domain/cpu/dedicatedCpuPlacement", True),
    ("/domain/cpu/numa", {"guestMappingPassthrough": {}}),
    ("/domain/memory/hugepages", {"pageSize": "1Gi"}),
    ("/domain/resources", {"requests": {"memory": "9Gi", "cpu": 2}, "overcommitGuestOverhead": True}),
    ("/domain/devices/disks/0/io", "native"),
    ("/domain/devices/disks/0/cache", "none"),
    ("/domain/devices/blockMultiQueue", True),
    ("/domain/devices/rng", {}),
    ("/domain/devices/tpm", {"persistent": True}),
    ("/domain/devices/interfaces/1/model", "e1000e"),
    ("/domain/firmware", {"bootloader": {"efi": {"secureBoot": False}}}),
    ("/domain/machine", {"type": "q35"}),
    ("/domain/ioThreadsPolicy", "auto"),
    ("/domain/features/smm", {"enabled": True}),
    ("/domain/clock/timer/hpet", {"present": False}),
    ("/evictionStrategy", "LiveMigrate"),
    ("/terminationGracePeriodSeconds", 60),
    ("/nodeSelector", {"zone": "a", "kubernetes.io/hostname": "n1"}),
    ("/tolerations", [{"key": "dedicated", "operator": "Equal", "value": "vms", "effect": "NoSchedule"}]),
    (
        "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
        [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}],
    ),
    ("/dnsConfig", {"nameservers": ["192.0.2.1"]}),
]


@pytest.mark.parametrize(("path", "value"), ALLOWED)
def test_how_a_machine_is_built_is_its_owners(path: str, value: Any) -> None:
    made = after(add(VMI + path, value))
    node = made["spec"]["template"]["spec"]
    for part in path[1:].split("/"):
        node = node[int(part) if part.isdigit() else part]
    assert node == value


def test_further_disks_of_its_own() -> None:
    volume = {
        "metadata": {"name": "data"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
    made = after(
        add("/spec/dataVolumeTemplates/-", volume),
        add(f"{VMI}/volumes/-", {"name": "data", "dataVolume": {"name": "data"}}),
        add(f"{VMI}/domain/devices/disks/-", {"name": "data", "disk": {"bus": "virtio"}}),
    )
    assert made["spec"]["dataVolumeTemplates"][1] == volume
    bigger = after(add("/spec/dataVolumeTemplates/0/spec/storage/resources/requests/storage", "64Gi"))
    assert bigger["spec"]["dataVolumeTemplates"][0]["spec"]["source"] == GIVEN.source


def test_masquerade_instead_of_a_bridge() -> None:
    where = f"{VMI}/domain/devices/interfaces/0"
    made = after({"op": "remove", "path": f"{where}/bridge"}, add(f"{where}/masquerade", {}))
    assert made["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0] == {
        "name": "default",
        "masquerade": {},
    }


def test_labels_that_policies_select_by_are_put_back() -> None:
    ours = machine()["metadata"]["labels"]
    own = {"example.com/team": "red", "hypershift.openshift.io/infra-id": "other"}
    for operations in (
        [{"op": "remove", "path": "/metadata/labels"}, {"op": "remove", "path": "/spec/template/metadata/labels"}],
        [add("/metadata/labels", own), add("/spec/template/metadata/labels", own)],
    ):
        made = after(*operations)
        for metadata in (made["metadata"], made["spec"]["template"]["metadata"]):
            assert ours.items() <= metadata["labels"].items()
    assert made["spec"]["template"]["metadata"]["labels"]["example.com/team"] == "red"


ROOT = {"name": "rhcos", "dataVolume": {"name": "rhcos"}}
REFUSED: list[tuple[str, Any, str]] = [
    ("/metadata/namespace", "kube-system", "metadata.namespace"),
    ("/metadata/name", "x", "metadata.name"),
    ("/metadata/ownerReferences", [], "metadata.ownerReferences"),
    ("/metadata/finalizers", ["a/b"], "metadata.finalizers"),
    ("/metadata/labels", 7, "metadata.labels"),
    ("/metadata/labels/example.com~1x", 7, "metadata.labels.example.com/x"),
    ("/metadata/labels/app", "kube-apiserver", "metadata.labels.app"),
    ("/metadata/annotations/hooks.kubevirt.io~1hookSidecars", "[]", "hookSidecars"),
    ("/metadata", "x", "metadata"),
    ("/spec/template/metadata", [], "spec.template.metadata"),
    ("/spec/template/metadata/labels/app", "ignition-server", "labels.app"),
    (
        "/spec/template/metadata/labels/hypershift.openshift.io~1control-plane-component",
        "etcd",
        "control-plane-component",
    ),
    ("/spec/template/metadata/annotations/hooks.kubevirt.io~1hookSidecars", "[]", "hookSidecars"),
    ("/spec/template/metadata/annotations/k8s.v1.cni.cncf.io~1networks", "x", "cni.cncf.io/networks"),
    ("/spec/template", 1, "spec.template"),
    ("/spec/template", {}, "spec.template.spec"),
    ("/spec/runStrategy", "Manual", "spec.runStrategy"),
    ("/spec/instancetype", {"name": "x"}, "spec.instancetype"),
    (f"{VMI}/volumes/-", {"name": "x", "serviceAccount": {"serviceAccountName": "operator"}}, "serviceAccount"),
    (f"{VMI}/volumes/-", {"name": "x", "secret": {"secretName": "root-ca"}}, "secret"),
    (f"{VMI}/volumes/-", {"name": "x", "configMap": {"name": "x"}}, "configMap"),
    (f"{VMI}/volumes/-", {"name": "x", "hostDisk": {"path": "/", "type": "Disk"}}, "hostDisk"),
    (f"{VMI}/volumes/-", {"name": "x", "downwardMetrics": {}}, "downwardMetrics"),
    (f"{VMI}/volumes/-", {"name": "x", "persistentVolumeClaim": {"claimName": "data-etcd-0"}}, "persistentVolumeClaim"),
    (f"{VMI}/volumes/-", {"name": "x", "dataVolume": {"name": "data-etcd-0"}}, "dataVolumeTemplates"),
    (f"{VMI}/volumes/-", {"name": "x", "cloudInitNoCloud": {"secretRef": {"name": "root-ca"}}}, "cloudInitNoCloud"),
    (f"{VMI}/volumes/-", {"name": "x", "sysprep": {"secret": {"name": "x"}}}, "sysprep"),
    (f"{VMI}/volumes/-", {"name": "x", "containerDisk": {"image": "x"}}, "containerDisk"),
    (f"{VMI}/volumes/-", {"name": "cloudinitvolume", "dataVolume": {"name": "rhcos"}}, "volumes"),
    (f"{VMI}/volumes", [], "volumes"),
    (f"{VMI}/volumes/0/dataVolume/name", "other", "volumes"),
    (f"{VMI}/accessCredentials", [], "accessCredentials"),
    (f"{VMI}/priorityClassName", "system-node-critical", "priorityClassName"),
    (f"{VMI}/hostname", "kube-apiserver", "hostname"),
    (f"{VMI}/subdomain", "etcd-discovery", "subdomain"),
    (f"{VMI}/livenessProbe", {"httpGet": {"host": "169.254.169.254", "port": 80}}, "livenessProbe"),
    (f"{VMI}/resourceClaims", [], "resourceClaims"),
    (f"{VMI}/networks/-", {"name": "x", "multus": {"networkName": "kube-system/net"}}, "networks"),
    (f"{VMI}/networks/1/multus/networkName", "kube-system/net", "networks"),
    (f"{VMI}/networks", [], "networks"),
    (f"{VMI}/tolerations", [{"operator": "Exists", "key": "node-role.kubernetes.io/control-plane"}], "key"),
    (f"{VMI}/tolerations", [{"operator": "Exists", "key": ""}], "key"),
    (f"{VMI}/tolerations", [{"operator": "Exists"}], "tolerations"),
    (f"{VMI}/terminationGracePeriodSeconds", 10**9, "terminationGracePeriodSeconds"),
    (f"{VMI}/domain/devices/hostDevices/-", {"name": "x", "deviceName": "gpu"}, "hostDevices"),
    (f"{VMI}/domain/devices/hostDevices", [], "hostDevices"),
    (f"{VMI}/domain/devices/gpus", [{"name": "x", "deviceName": "gpu"}], "gpus"),
    (f"{VMI}/domain/devices/filesystems", [{"name": "x", "virtiofs": {}}], "filesystems"),
    (f"{VMI}/domain/devices/interfaces/-", {"name": "x", "bridge": {}}, "interfaces[2].name"),
    (f"{VMI}/domain/devices/interfaces/0/macAddress", "02:00:00:00:00:01", "macAddress"),
    (f"{VMI}/domain/devices/interfaces/0/binding", {"name": "plug"}, "binding"),
    (f"{VMI}/domain/devices/interfaces/0/masquerade", {}, "exactly one"),
    (f"{VMI}/domain/devices/disks/-", {"name": "none", "disk": {}}, "disks"),
    (f"{VMI}/domain/devices/disks/0/lun", {"reservation": True}, "reservation"),
    (f"{VMI}/domain/devices/autoattachVSOCK", True, "autoattachVSOCK"),
    (f"{VMI}/domain/devices/downwardMetrics", {}, "downwardMetrics"),
    (f"{VMI}/domain/devices/networkInterfaceMultiqueue", 1, "networkInterfaceMultiqueue"),
    (f"{VMI}/domain/firmware", {"kernelBoot": {"container": {"image": "x"}}}, "kernelBoot"),
    (f"{VMI}/domain/resources", {"limits": {"nvidia.com/gpu": 1}}, "nvidia.com/gpu"),
    (f"{VMI}/domain/resources", {"limits": {"memory": "much"}}, "memory"),
    (f"{VMI}/domain/cpu/cores", 2**31, "cores"),
    (f"{VMI}/domain/cpu/cores", 1.0, "cores"),
    (f"{VMI}/domain/cpu/cores", True, "cores"),
    (f"{VMI}/domain/cpu/model", "x\ny", "model"),
    (f"{VMI}/domain/clock", {"timezone": 1}, "timezone"),
    (f"{VMI}/domain/clock", {"other": 1}, "clock.other"),
    ("/spec/dataVolumeTemplates/0/spec/source", {"pvc": {"namespace": "other", "name": "data"}}, "source"),
    ("/spec/dataVolumeTemplates/0/spec/source", {"blank": {}}, "source"),
    ("/spec/dataVolumeTemplates/0/spec/pvc", {"volumeName": "pv"}, "spec.pvc"),
    ("/spec/dataVolumeTemplates/0/spec/storage/volumeName", "pv", "volumeName"),
    ("/spec/dataVolumeTemplates/0/metadata/annotations", {"k8s.v1.cni.cncf.io/networks": "x"}, "networks"),
    ("/spec/dataVolumeTemplates/0/metadata/labels", {"x": "y"}, "labels"),
    ("/spec/dataVolumeTemplates/-", {"metadata": {"name": "d"}, "spec": {"sourceRef": {"name": "x"}}}, "sourceRef"),
    ("/spec/dataVolumeTemplates/-", {"metadata": {"name": "d"}, "spec": {"source": {"http": {"url": "x"}}}}, "http"),
    ("/status", {}, "status"),
    ("", {"spec": {}}, "spec.template"),
    ("", [], "no virtual machine"),
]


@pytest.mark.parametrize(("path", "value", "named"), REFUSED)
def test_what_reaches_beyond_the_machine_is_refused_by_name(path: str, value: Any, named: str) -> None:
    with pytest.raises(HcpError) as refused:
        after(add(path, value))
    assert named in str(refused.value)


def test_moving_and_copying_are_judged_by_what_comes_out() -> None:
    with pytest.raises(HcpError, match="volumes"):
        after({"op": "move", "from": f"{VMI}/networks", "path": f"{VMI}/volumes"})
    with pytest.raises(HcpError, match="namespace"):
        after({"op": "copy", "from": "/metadata/labels", "path": "/metadata/namespace"})


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 900 + "]" * 900,
        json.dumps([add("/x", 1)] * 300),
        json.dumps(
            [add("/x", {"y": "z" * 1000})] + [{"op": "copy", "from": "", "path": f"/x/{n}"} for n in range(200)]
        ),
        '[{"op": "add", "path": "/spec/x", "value": ' + "9" * 5000 + "}]",
        "NaN",
        "[NaN]",
        '[{"op": ["add"], "path": "/x", "value": 1}]',
    ],
)
def test_a_patch_is_bounded(text: str) -> None:
    with pytest.raises(HcpError):
        patched(machine(), (text,))


def test_without_a_patch_nothing_changes() -> None:
    assert patched(machine(), ()) == machine()


_PATHS = st.sampled_from([row[0] for row in REFUSED] + [VMI + row[0] for row in ALLOWED])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.sampled_from(["add", "replace"]), _PATHS, _VALUES), min_size=1, max_size=4))
def test_whatever_is_tried_ends_in_a_sentence_or_in_a_machine_of_ours(tries: list[tuple[str, str, Any]]) -> None:
    try:
        made = after(*({"op": op, "path": path, "value": value} for op, path, value in tries))
    except HcpError:
        return
    before = machine()
    assert before["metadata"]["labels"].items() <= made["metadata"]["labels"].items()
    assert all(isinstance(v, str) for v in made["spec"]["template"]["metadata"]["labels"].values())
    inside = made["spec"]["template"]["spec"]
    assert patch_types.same(inside["networks"], before["spec"]["template"]["spec"]["networks"])
    assert {v["dataVolume"]["name"] for v in inside["volumes"]} == {"rhcos"}
    json.dumps(made, allow_nan=False)
