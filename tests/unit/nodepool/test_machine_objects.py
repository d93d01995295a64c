import json
from dataclasses import replace
from typing import Any

import pytest

from hcp.errors import HcpError
from hcp.nodepool.bootimage import boot_image, cache_volume, cached, choose_cache, disk_source
from hcp.nodepool.health import machine_health_check, repair_template
from hcp.nodepool.machines import (
    DeploymentInput,
    deployment_complete,
    machine_deployment,
    resources_name,
)
from hcp.nodepool.scaling import effective_replicas
from hcp.nodepool.template import (
    TemplateInput,
    choose_template,
    host_devices,
    machine_template,
    machine_template_spec,
    template_name,
)

SOURCE = {"registry": {"url": "docker://r/disk@sha256:1", "pullMethod": "node"}}


def platform(**more: Any) -> dict[str, Any]:
    return {"rootVolume": {"type": "Persistent", "persistent": {"size": "32Gi"}}, **more}


def vm_of(given: TemplateInput) -> dict[str, Any]:
    found: dict[str, Any] = machine_template_spec(given)["template"]["spec"]["virtualMachineTemplate"]
    return found


def pool(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "np", "namespace": "clusters", "uid": "u"},
        "spec": {"clusterName": "demo", "replicas": 2, **spec},
    }


def test_the_exact_template() -> None:
    labels = {"hypershift.openshift.io/nodepool-name": "np", "hypershift.openshift.io/infra-id": "demo-x"}
    vm = vm_of(TemplateInput("np", "demo-x", platform(compute={"memory": "2Gi", "cores": 1}), SOURCE))
    assert vm == {
        "metadata": {"labels": labels},
        "spec": {
            "runStrategy": "Always",
            "dataVolumeTemplates": [
                {
                    "metadata": {"name": "rhcos", "labels": {"hypershift.openshift.io/is-kubevirt-rhcos": "true"}},
                    "spec": {"source": SOURCE, "storage": {"resources": {"requests": {"storage": "32Gi"}}}},
                }
            ],
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {
                        "kubevirt.io/allow-pod-bridge-network-live-migration": "",
                        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": (
                            "private,public,sockets,virt-bin-share-dir,libvirt-runtime,ephemeral-disks,"
                            "container-disks,hotplug-disks"
                        ),
                    },
                },
                "spec": {
                    "evictionStrategy": "External",
                    "domain": {
                        "memory": {"guest": "2Gi"},
                        "cpu": {"cores": 1},
                        "devices": {
                            "disks": [{"name": "rhcos", "disk": {"bus": "virtio"}}],
                            "interfaces": [{"name": "default", "bridge": {}}],
                            "networkInterfaceMultiqueue": True,
                        },
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "volumes": [{"name": "rhcos", "dataVolume": {"name": "rhcos"}}],
                    "terminationGracePeriodSeconds": 300,
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": {"hypershift.openshift.io/nodepool-name": "np"}},
                        }
                    ],
                },
            },
        },
    }


def test_options_of_the_template() -> None:
    full = platform(
        compute={"memory": "4Gi", "cores": 2, "qosClass": "Guaranteed"},
        attachDefaultNetwork=False,
        additionalNetworks=[{"name": "ns/nad"}],
        networkInterfaceMultiqueue="Disable",
        hostDevices=[{"deviceName": "a", "count": 2}, {"deviceName": "b"}],
        nodeSelector={"zone": "a"},
    )
    vm = vm_of(TemplateInput("np", "demo-x", full, SOURCE, infra_namespace="infra", topology_spread=False))
    spec = vm["spec"]["template"]["spec"]
    assert vm["metadata"]["namespace"] == "infra"
    assert spec["domain"]["resources"]["limits"] == {"memory": "4Gi", "cpu": "2"}
    assert "memory" not in spec["domain"]
    assert spec["networks"] == [{"name": "iface1_ns-nad", "multus": {"networkName": "ns/nad"}}]
    assert "networkInterfaceMultiqueue" not in spec["domain"]["devices"]
    assert [d["name"] for d in spec["domain"]["devices"]["hostDevices"]] == [
        "hostdevice-1",
        "hostdevice-2",
        "hostdevice-3",
    ]
    assert spec["nodeSelector"] == {"zone": "a"}
    assert "podAntiAffinity" in spec["affinity"]
    assert "allow-pod-bridge" not in json.dumps(vm)


def test_host_device_names_are_unique() -> None:
    names = [entry["name"] for entry in host_devices([{"deviceName": "x", "count": 3}, {"deviceName": "x"}])]
    assert len(set(names)) == 4


def test_patches_are_applied_in_order() -> None:
    patches = (
        '[{"op": "add", "path": "/spec/template/spec/domain/cpu/cores", "value": 3}]',
        '[{"op": "replace", "path": "/spec/template/spec/domain/cpu/cores", "value": 4}]',
    )
    vm = vm_of(TemplateInput("np", "i", platform(), SOURCE, patches=patches))
    assert vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 4
    with pytest.raises(HcpError):
        vm_of(TemplateInput("np", "i", platform(), SOURCE, patches=('[{"op": "remove", "path": "/spec"}]',)))


def test_the_name_follows_the_content() -> None:
    one = machine_template_spec(TemplateInput("np", "i", platform(), SOURCE))
    two = machine_template_spec(TemplateInput("np", "i", platform(nodeSelector={"a": "b"}), SOURCE))
    assert template_name("np", one) == template_name("np", one) != template_name("np", two)
    # A change here replaces every VM of every pool: never by accident.
    assert template_name("np", one) == "np-5f0b0035"
    assert machine_template("t", "ns", "clusters/np", one)["kind"] == "KubevirtMachineTemplate"
    older = machine_template_spec(TemplateInput("np", "i", platform(), SOURCE, grace=None))
    assert template_name("np", older) == "np-88917195"


def test_machines_of_an_older_operator_keep_their_template() -> None:
    given = TemplateInput("np", "i", platform(), SOURCE)
    older = machine_template_spec(replace(given, grace=None))
    name = template_name("np", older)
    assert choose_template(given, None, name) == (name, older)
    # Whatever replaces them anyway brings the time to shut down along.
    changed = replace(given, platform=platform(nodeSelector={"a": "b"}))
    assert grace_of(choose_template(changed, None, name)[1]) == 300
    assert grace_of(choose_template(given, None, "")[1]) == 300
    assert grace_of(choose_template(given, "5m", name)[1]) == 300


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("0s", 0), ("1.5s", 2), ("24h", 86400)])
def test_the_time_to_shut_down_can_be_asked_for(text: str, seconds: int) -> None:
    assert grace_of(choose_template(TemplateInput("np", "i", platform(), SOURCE), text, "")[1]) == seconds


@pytest.mark.parametrize("text", ["", "300", "-1s", "soon", "25h", "5 m"])
def test_a_time_to_shut_down_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(HcpError, match=r"kubevirt-termination-grace-period .* such as 10m"):
        choose_template(TemplateInput("np", "i", platform(), SOURCE), text, "")


def grace_of(spec: dict[str, Any]) -> Any:
    vm = spec["template"]["spec"]["virtualMachineTemplate"]
    return vm["spec"]["template"]["spec"].get("terminationGracePeriodSeconds")


def test_boot_images() -> None:
    own = boot_image(platform(rootVolume={"diskImage": {"containerDiskImage": "me/disk:1"}}), None)
    assert own.source["registry"]["url"] == "docker://me/disk:1" and not own.digest
    release = boot_image(platform(), "r/disk@sha256:1")
    assert release.digest == "sha256:1"
    for bad in (None, "", "r/disk:1", "a@b@c"):
        with pytest.raises(HcpError):
            boot_image(platform(), bad)
    with_cache = platform()
    with_cache["rootVolume"]["cacheStrategy"] = {"type": "PVC"}
    assert cached(with_cache, release) and not cached(with_cache, own) and not cached(platform(), release)
    assert disk_source(release, "c", "ns") == {"pvc": {"namespace": "ns", "name": "c"}}
    assert disk_source(release, None, "ns") == dict(release.source)


def test_cache_choice() -> None:
    image = boot_image(platform(), "r/disk@sha256:1")
    volume = cache_volume("ns", "uid", platform(), image)
    assert "preallocation" not in volume["spec"]

    def volume_named(name: str, digest: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "annotations": {"hypershift.openshift.io/kubevirt-boot-image-hash": digest}}}

    volumes = [volume_named("a", "sha256:0"), volume_named("b", "sha256:1"), volume_named("c", "sha256:1")]
    assert choose_cache(volumes, "sha256:1", "c") == ("c", ["a", "b"])
    assert choose_cache(volumes, "sha256:1", "gone") == ("b", ["a", "c"])
    assert choose_cache(volumes, "sha256:2", "a") == (None, ["a", "b", "c"])


def deployment(**spec: Any) -> dict[str, Any]:
    return machine_deployment(DeploymentInput("clusters-demo", pool(**spec), "demo-x", "t", "u", "1.36.3", False))


def test_machine_deployment() -> None:
    md = deployment(nodeDrainTimeout="5m")
    name = resources_name("demo-x", "demo", "np")
    assert md["spec"]["selector"]["matchLabels"] == {"cluster.x-k8s.io/cluster-name": "demo-x", name: name}
    assert md["spec"]["template"]["spec"]["bootstrap"] == {"dataSecretName": "u"}
    assert md["spec"]["template"]["spec"]["nodeDrainTimeout"] == "5m"
    assert md["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert md["spec"]["replicas"] == 2
    on_delete = deployment(management={"replace": {"strategy": "OnDelete"}})
    assert on_delete["spec"]["strategy"] == {"type": "OnDelete"}


def test_replicas() -> None:
    assert effective_replicas({}, None) == 0
    scaling = {"autoScaling": {"min": 2, "max": 4}}
    assert [effective_replicas(scaling, current) for current in (None, 1, 3, 9)] == [2, 2, 3, 4]
    assert effective_replicas({"autoScaling": {"min": 0, "max": 4}}, None) == 0


def test_complete() -> None:
    md = {"metadata": {"generation": 2}, "spec": {"replicas": 2}}
    good = {"updatedReplicas": 2, "replicas": 2, "availableReplicas": 2, "observedGeneration": 2}
    assert deployment_complete({**md, "status": good})
    assert not deployment_complete({**md, "status": {**good, "replicas": 3}})
    assert not deployment_complete({**md, "status": {**good, "observedGeneration": 1}})
    assert not deployment_complete({**md, "status": {**good, "v1beta2": {"upToDateReplicas": 2}}})
    assert deployment_complete({**md, "status": {**good, "v1beta2": {"upToDateReplicas": 2, "availableReplicas": 2}}})


def test_health_check() -> None:
    prefix = "hypershift.openshift.io/machine-health-check"
    given = pool()
    given["metadata"]["annotations"] = {f"{prefix}-max-unhealthy": "40%", f"{prefix}-timeout": "bad"}
    spec = machine_health_check("ns", given, "demo-x", {f"{prefix}-node-startup-timeout": "7m"})["spec"]
    assert spec["maxUnhealthy"] == "40%"
    assert spec["nodeStartupTimeout"] == "7m"
    assert [entry["timeout"] for entry in spec["unhealthyConditions"]] == ["8m0s", "8m0s"]
    template = repair_template("ns", given, "demo-x", {})
    ref = spec["remediationTemplate"]
    assert (ref["kind"], ref["name"], ref["namespace"]) == (template["kind"], "np", "ns")
    assert ref["apiVersion"] == template["apiVersion"]


def test_the_order_of_remedies_is_the_pools_then_the_clusters() -> None:
    prefix = "hypershift.openshift.io/repair-restart"

    def order(own: dict[str, str], clusters: dict[str, str]) -> tuple[int, str]:
        given = pool()
        given["metadata"]["annotations"] = own
        spec = repair_template("ns", given, "demo-x", clusters)["spec"]["template"]["spec"]
        return spec["restarts"], spec["restartTimeout"]

    assert order({}, {}) == (1, "10m")
    assert order({f"{prefix}s": "0"}, {f"{prefix}s": "3", f"{prefix}-timeout": "4m"}) == (0, "4m")
    for bad in ("-1", "x", "11", "", "1.5", "\N{SUPERSCRIPT TWO}"):
        assert order({f"{prefix}s": bad, f"{prefix}-timeout": bad or "y"}, {}) == (1, "10m")


@pytest.mark.parametrize("value", ["99999999999h", "8m0s\n", "-5m", "1e9s", "x", "\N{ARABIC-INDIC DIGIT ONE}s"])
def test_a_time_that_cluster_api_could_not_read_is_not_handed_on(value: str) -> None:
    given = pool()
    prefix = "hypershift.openshift.io/machine-health-check"
    given["metadata"]["annotations"] = {f"{prefix}-timeout": value, f"{prefix}-node-startup-timeout": value}
    spec = machine_health_check("ns", given, "demo-x", {})["spec"]
    assert (spec["unhealthyConditions"][0]["timeout"], spec["nodeStartupTimeout"]) == ("8m0s", "20m0s")


@pytest.mark.parametrize("value", ["99999999999", "2\n", "-1", "1000%", "x%"])
def test_a_number_that_cluster_api_could_not_read_is_not_handed_on(value: str) -> None:
    given = pool()
    given["metadata"]["annotations"] = {"hypershift.openshift.io/machine-health-check-max-unhealthy": value}
    assert machine_health_check("ns", given, "demo-x", {})["spec"]["maxUnhealthy"] == 2


def test_devices_are_not_expanded_without_end() -> None:
    with pytest.raises(HcpError, match="256"):
        host_devices([{"deviceName": "gpu", "count": 2**31 - 1}])
