from __future__ import annotations

from typing import Any

import pytest
from tests.support.unit.controlplane import params, secrets_and_config_maps, workloads

from hcp.api import names
from hcp.controlplane import apiserver, disruption, etcd
from hcp.controlplane.meta import CONFIG_HASH
from hcp.errors import HcpError

KINDS = [params(), params(highly_available=True)]


def pods(p: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(w["metadata"]["name"], w["spec"]["template"]) for w in workloads(p)]


@pytest.mark.parametrize("p", KINDS)
def test_every_pod_meets_restricted_pod_security(p: Any) -> None:
    for name, template in pods(p):
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] == security["fsGroup"] == 1003
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert own["readOnlyRootFilesystem"] is True
        assert all("hostPath" not in v for v in spec["volumes"])


@pytest.mark.parametrize("p", KINDS)
def test_startup_is_asked_every_second(p: Any) -> None:
    for name, template in pods(p):
        for container in template["spec"]["containers"]:
            assert container["startupProbe"]["periodSeconds"] == 1, name
            assert "livenessProbe" in container


@pytest.mark.parametrize("p", KINDS)
def test_pods_mount_only_what_is_made(p: Any) -> None:
    made = {(m["kind"], m["metadata"]["name"]) for m in secrets_and_config_maps(p)}
    for name, template in pods(p):
        spec = template["spec"]
        volumes = {v["name"]: v for v in spec["volumes"]} | {"data": {}}
        for volume in volumes.values():
            if "secret" in volume:
                assert ("Secret", volume["secret"]["secretName"]) in made, name
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in made, name
        for container in spec["containers"]:
            assert {m["name"] for m in container["volumeMounts"]} <= volumes.keys()


@pytest.mark.parametrize("p", KINDS)
def test_every_container_has_requests_and_no_limits(p: Any) -> None:
    for _, template in pods(p):
        for container in template["spec"]["containers"]:
            assert set(container["resources"]) == {"requests"}
            assert set(container["resources"]["requests"]) == {"cpu", "memory"}


def test_availability_decides_replicas_and_spreading() -> None:
    single, high = (workloads(p) for p in KINDS)
    assert [w["spec"]["replicas"] for w in single] == [1, 1, 1, 1]
    assert [w["spec"]["replicas"] for w in high] == [3, 3, 2, 2]
    for workload in high:
        affinity = workload["spec"]["template"]["spec"]["affinity"]
        assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity["podAntiAffinity"]


def test_placement_and_labels_of_the_user_reach_every_pod() -> None:
    p = params(
        node_selector={"zone": "a"},
        tolerations=({"key": "cp", "operator": "Exists"},),
        labels={"team": "x", "app": "never"},
    )
    for name, template in pods(p):
        assert template["spec"]["nodeSelector"] == {"zone": "a"}
        assert {"key": "cp", "operator": "Exists"} in template["spec"]["tolerations"]
        assert template["metadata"]["labels"]["team"] == "x"
        assert template["metadata"]["labels"]["app"] == name


def test_annotations_change_priority_requests_and_memory_settings() -> None:
    p = params(
        annotations={
            names.ANNOTATION_ETCD_PRIORITY: "mine",
            f"{names.ANNOTATION_RESOURCE_OVERRIDE_PREFIX}kube-apiserver.kube-apiserver": "cpu=2,memory=3Gi",
            names.ANNOTATION_KAS_GOGC: "77",
            names.ANNOTATION_KAS_GOMEMLIMIT: "300MiB",
        }
    )
    etcd, api, *_ = workloads(p)
    assert etcd["spec"]["template"]["spec"]["priorityClassName"] == "mine"
    main = api["spec"]["template"]["spec"]["containers"][0]
    assert main["resources"]["requests"] == {"cpu": "2", "memory": "3Gi"}
    env = {e["name"]: e["value"] for e in main["env"]}
    assert (env["GOGC"], env["GOMEMLIMIT"]) == ("77", "300MiB")


def test_only_single_replicas_are_kept_to_one_thread() -> None:
    def threads(p: Any) -> dict[str, str | None]:
        found = {}
        for workload in workloads(p):
            for container in workload["spec"]["template"]["spec"]["containers"]:
                env = {e["name"]: e.get("value") for e in container["env"]}
                found[container["name"]] = env.get("GOMAXPROCS")
        return found

    one = {"konnectivity-server", "kube-controller-manager", "kube-scheduler"}
    assert {name for name, value in threads(params()).items() if value == "1"} == one
    assert set(threads(params(highly_available=True)).values()) == {None}


def test_a_release_without_konnectivity_gets_no_sidecar_and_one_without_etcd_is_refused() -> None:
    images = {k: v for k, v in params().images.items() if k != "konnectivity-server"}
    api = workloads(params(images=images))[1]
    assert [c["name"] for c in api["spec"]["template"]["spec"]["containers"]] == ["kube-apiserver"]
    with pytest.raises(HcpError, match="no image for etcd"):
        workloads(params(images={}))


def test_templates_carry_the_hash_of_what_they_mount() -> None:
    for _, template in pods(params()):
        assert template["metadata"]["annotations"][CONFIG_HASH] == "h"


def test_etcd_keeps_its_volume() -> None:
    stateful = workloads(params(etcd_size="3Gi", etcd_storage_class="fast"))[0]["spec"]
    assert stateful["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    claim = stateful["volumeClaimTemplates"][0]["spec"]
    assert claim["storageClassName"] == "fast"
    assert claim["resources"]["requests"]["storage"] == "3Gi"


def test_only_the_members_of_a_quorum_have_to_be_ready_to_be_asked() -> None:
    for available, early in ((False, True), (True, False)):
        [client, *_] = etcd.services(params(highly_available=available))
        assert client["spec"].get("publishNotReadyAddresses", False) is early


def test_members_find_each_other_by_name_before_they_are_ready_and_one_alone_needs_no_name() -> None:
    [_, discovery] = etcd.services(params(highly_available=True))
    assert discovery["spec"]["publishNotReadyAddresses"] is True
    assert [one["metadata"]["name"] for one in etcd.services(params())] == ["etcd-client"]


def test_api_servers_prefer_the_member_on_their_own_node_where_the_cluster_can() -> None:
    for more, wanted in (
        ({}, None),
        ({"highly_available": True}, None),
        ({"same_node_first": True}, None),
        ({"highly_available": True, "same_node_first": True}, "PreferSameNode"),
    ):
        [client, *others] = etcd.services(params(**more))
        assert client["spec"].get("trafficDistribution") == wanted
        assert all("trafficDistribution" not in one["spec"] for one in others), "members are called by name"


def test_api_servers_look_for_nodes_with_members_but_rather_for_one_each() -> None:
    def affinity(p: Any, **how: Any) -> dict[str, Any]:
        found: dict[str, Any] = apiserver.deployment(p, "h", **how)["spec"]["template"]["spec"]["affinity"]
        return found

    several = affinity(params(highly_available=True))
    [beside] = several["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert beside["podAffinityTerm"]["labelSelector"]["matchLabels"]["app"] == "etcd"
    assert beside["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    apart = several["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert beside["weight"] < next(
        a["weight"] for a in apart if a["podAffinityTerm"]["topologyKey"].endswith("hostname")
    )
    assert "podAffinity" not in affinity(params(highly_available=True), beside_etcd=False)
    assert affinity(params()) == affinity(params(), beside_etcd=False), "a single replica has what it had"
    foreign = params(highly_available=True, foreign_etcd="https://etcd.example:2379")
    assert "podAffinity" not in affinity(foreign)


@pytest.mark.parametrize("p", KINDS)
def test_a_drain_is_never_blocked_for_ever_and_takes_one_pod_at_a_time(p: Any) -> None:
    for budget in disruption.budgets(p):
        assert budget["spec"]["maxUnavailable"] == 1
        assert "minAvailable" not in budget["spec"]
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
