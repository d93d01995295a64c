"""The CRDs on a real API server: what is accepted, what each rule refuses, what is filled in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as support

from hcp.errors import HcpError
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kube.errors import Invalid

VIRT = "spec.platform.kubevirt"
OVN = "spec.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig"


@pytest.fixture(scope="module", autouse=True)
def crds(api_server: Path) -> None:
    async def apply() -> None:
        async with Client(load_config(api_server)) as client:
            await support.install(client)

    asyncio.run(apply())


def _lb(**more: Any) -> list[dict[str, Any]]:
    kinds = {"APIServer": "LoadBalancer", "Ignition": "Route", "Konnectivity": "Route", "OAuthServer": "Route"}
    found: list[dict[str, Any]] = [
        {"service": name, "servicePublishingStrategy": {"type": kind}} for name, kind in kinds.items()
    ]
    found[0]["servicePublishingStrategy"].update(more)
    return found


def _oidc(issuer: str) -> dict[str, Any]:
    return {
        "name": "id",
        "issuer": {"issuerURL": issuer, "audiences": ["hcp"]},
        "claimMappings": {"username": {"claim": "email"}},
    }


async def test_rendered_objects_are_accepted_and_kept_unchanged(client: Client, namespace: str) -> None:
    for wanted in (support.rendered_cluster(namespace), support.rendered_pool(namespace)):
        made = await client.create(wanted)
        assert _holds(made["spec"], wanted["spec"]), json.dumps(made["spec"], indent=1)


async def test_every_optional_field_the_command_line_renders_is_kept(client: Client, namespace: str) -> None:
    cluster = support.rendered_cluster(namespace, "rich")
    cluster["metadata"]["annotations"] = {"hypershift.openshift.io/cleanup-cloud-resources": "true"}
    cluster["spec"]["platform"]["kubevirt"] = {
        "credentials": {
            "infraKubeConfigSecret": {"key": "kubeconfig", "name": "rich-infra-credentials"},
            "infraNamespace": "rich-vms",
        },
        "storageDriver": {
            "manual": {
                "storageClassMapping": [
                    {"group": "g1", "guestStorageClassName": "gold", "infraStorageClassName": "rbd"}
                ],
                "volumeSnapshotClassMapping": [
                    {
                        "group": "g1",
                        "guestVolumeSnapshotClassName": "goldsnap",
                        "infraVolumeSnapshotClassName": "rbdsnap",
                    }
                ],
            },
            "type": "Manual",
        },
    }
    cluster["spec"].update(
        additionalTrustBundle={"name": "user-ca-bundle"},
        configuration={
            "operatorhub": {"disableAllDefaultSources": True},
            "featureGate": {"featureSet": "TechPreviewNoUpgrade"},
        },
        dns={"baseDomain": "lab.local"},
        imageContentSources=[{"source": "quay.io/a", "mirrors": ["m.example.com/a"]}],
        infrastructureAvailabilityPolicy="SingleReplica",
        kubeAPIServerDNSName="api.lab.local",
        labels={"team": "a"},
        nodeSelector={"zone": "a"},
        operatorConfiguration={"clusterNetworkOperator": {"ovnKubernetesConfig": {"mtu": 8900}}},
        pausedUntil="2030-01-02T03:04:05Z",
        sshKey={"name": "rich-ssh-key"},
        tolerations=[{"effect": "NoSchedule", "key": "cp", "operator": "Exists"}],
    )
    names = ("APIServer", "Ignition", "Konnectivity", "OAuthServer", "OIDC")
    cluster["spec"]["services"] = [
        {"service": name, "servicePublishingStrategy": {"type": "NodePort", "nodePort": {"address": "192.0.2.1"}}}
        for name in names
    ]
    pool = support.rendered_pool(namespace, "rich")
    pool["spec"]["platform"]["kubevirt"].update(
        additionalNetworks=[{"name": "ns/nad"}],
        compute={"cores": 4, "memory": "8Gi", "qosClass": "Guaranteed"},
        hostDevices=[{"count": 2, "deviceName": "nvidia-a100"}],
        networkInterfaceMultiqueue="Disable",
        nodeSelector={"zone": "a"},
        rootVolume={
            "cacheStrategy": {"type": "PVC"},
            "diskImage": {"containerDiskImage": "quay.io/x/disk:1"},
            "persistent": {
                "accessModes": ["ReadWriteMany"],
                "size": "64Gi",
                "storageClass": "rbd",
                "volumeMode": "Block",
            },
            "type": "Persistent",
        },
    )
    pool["spec"].update(nodeDrainTimeout="5m0s", pausedUntil="true")
    for wanted in (cluster, pool):
        made = await client.create(wanted)
        assert _holds(made["spec"], wanted["spec"]), json.dumps(made["spec"], indent=1)


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and _holds(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(_holds(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted)


async def test_the_guides_node_pool_without_release_is_accepted(client: Client, namespace: str) -> None:
    pool = support.changed(support.rendered_pool(namespace), "spec.release", None)
    pool = support.changed(pool, f"{VIRT}.hostDevices", [{"count": 2, "deviceName": "nvidia-a100"}])
    made = await client.create(pool)
    assert "release" not in made["spec"]


async def test_another_platforms_block_is_preserved(client: Client, namespace: str) -> None:
    block = {"region": "eu-1", "nested": {"list": [{"a": 1}]}}
    cluster = support.changed(
        support.rendered_cluster(namespace, "aws"), "spec.platform", {"type": "AWS", "aws": block}
    )
    made = await client.create(cluster)
    assert made["spec"]["platform"]["aws"] == block


async def test_defaults_of_a_sparse_cluster(client: Client, namespace: str) -> None:
    sparse = support.rendered_cluster(namespace, "sparse")
    kept = {name: sparse["spec"][name] for name in ("platform", "pullSecret", "release", "services")}
    made = (await client.create({**sparse, "spec": kept}, dry_run=True))["spec"]
    assert made["networking"] == {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
        "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
    }
    assert made["etcd"]["managed"]["storage"] == {"type": "PersistentVolume", "persistentVolume": {"size": "8Gi"}}
    assert made["controllerAvailabilityPolicy"] == "HighlyAvailable"
    assert made["infrastructureAvailabilityPolicy"] == "SingleReplica"
    assert made["issuerURL"] == "https://kubernetes.default.svc"
    assert made["olmCatalogPlacement"] == "management"


async def test_defaults_of_a_sparse_node_pool(client: Client, namespace: str) -> None:
    pool = support.rendered_pool(namespace, "sparse")
    pool["spec"] = {
        "clusterName": "demo",
        "management": {},
        "platform": {"type": "KubeVirt", "kubevirt": {"hostDevices": [{"deviceName": "gpu"}]}},
    }
    made = (await client.create(pool, dry_run=True))["spec"]
    virt = made["platform"]["kubevirt"]
    assert virt["rootVolume"] == {"type": "Persistent", "persistent": {"size": "32Gi"}}
    assert virt["compute"] == {"memory": "8Gi", "cores": 2, "qosClass": "Burstable"}
    assert virt["networkInterfaceMultiqueue"] == "Enable"
    assert virt["attachDefaultNetwork"] is True
    assert virt["hostDevices"] == [{"deviceName": "gpu", "count": 1}]
    assert made["arch"] == "amd64"
    assert made["management"] == {
        "autoRepair": False,
        "upgradeType": "Replace",
        "replace": {"strategy": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }


GOOD_CLUSTER: list[tuple[str, Any]] = [
    ("spec.networking.machineNetwork", [{"cidr": "192.168.0.0/24"}]),
    ("spec.networking.clusterNetwork", [{"cidr": "10.132.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48"}]),
    ("spec.networking.apiServer", {"advertiseAddress": "fd00::1", "port": 7443, "allowedCIDRBlocks": ["10.0.0.0/8"]}),
    ("spec.pausedUntil", "true"),
    ("spec.pausedUntil", "2030-01-02T03:04:05Z"),
    ("spec.pausedUntil", "2030-01-02T03:04:05.123+02:00"),
    ("spec.autoscaling", {"scaleDown": {"delayAfterAddSeconds": 60}, "expanders": ["LeastWaste"]}),
    ("spec.configuration.oauth.tokenConfig.accessTokenInactivityTimeout", "300s"),
    ("spec.configuration.operatorhub", {"disableAllDefaultSources": True}),
    ("spec.capabilities", {"disabled": ["Ingress", "Console"], "enabled": ["Insights"]}),
    ("spec.tolerations", [{"effect": "NoSchedule", "key": "cp", "operator": "Exists"}]),
    ("spec.imageContentSources", [{"source": "quay.io/a", "mirrors": ["mirror.example/a"]}]),
    ("spec.services", _lb(loadBalancer={"hostname": "api.example.com"})),
    ("spec.clusterID", "01234567-89ab-cdef-0123-456789abcdef"),
    ("spec.clusterID", "01234567-89AB-CDEF-0123-456789ABCDEF"),
    ("spec.autoscaling.maxNodeProvisionTime", "900000ms"),
    ("spec.nodeSelector", {f"l{i}": "v" for i in range(40)}),
    ("spec.imageContentSources", [{"source": "quay.io/a", "mirrors": [f"m{i}.example/a" for i in range(200)]}]),
    ("spec.configuration.authentication", {"type": "OIDC", "oidcProviders": [_oidc("https://id.example")]}),
    (OVN, {"ipv4": {"internalJoinSubnet": "100.65.0.0/16"}, "mtu": 8900}),
    (
        "spec.etcd",
        {
            "managementType": "Unmanaged",
            "unmanaged": {"endpoint": "https://e:2379", "tls": {"clientSecret": {"name": "s"}}},
        },
    ),
    (VIRT, {"storageDriver": {"type": "None"}}),
    (f"{VIRT}.credentials", {"infraNamespace": "vms", "infraKubeConfigSecret": {"name": "s", "key": "kubeconfig"}}),
    ("spec.kubeAPIServerDNSName", "api.custom.example.com"),
    ("spec.labels", {"team": "a"}),
]


@pytest.mark.parametrize(("path", "value"), GOOD_CLUSTER)
async def test_good_cluster(client: Client, namespace: str, path: str, value: Any) -> None:
    made = await client.create(support.changed(support.rendered_cluster(namespace, "good"), path, value), dry_run=True)
    node: Any = made
    for part in path.split("."):
        node = node[part]
    assert _holds(node, value)


BAD_CLUSTER: list[tuple[str, Any, str]] = [
    ("spec.release.image", "", "at least 1 chars"),
    ("spec.release", None, "spec.release: Required"),
    ("spec.pullSecret", None, "spec.pullSecret: Required"),
    ("spec.services", None, "spec.services: Required"),
    ("spec.platform.type", "Moon", "Unsupported value"),
    ("spec.controllerAvailabilityPolicy", "Lots", "Unsupported value"),
    ("spec.networking.networkType", "Cilium", "Unsupported value"),
    ("spec.networking.clusterNetwork", [{"cidr": "10.132.0.0"}], "clusterNetwork[0].cidr"),
    ("spec.networking.clusterNetwork", [{"cidr": "10.0.0.0/40"}], "clusterNetwork[0].cidr"),
    ("spec.networking.clusterNetwork", [{"cidr": f"10.{i}.0.0/16"} for i in range(3)], "must have at most 2 items"),
    ("spec.networking.machineNetwork", [{"cidr": "172.31.0.0/16"}], "may not be repeated"),
    ("spec.networking.serviceNetwork", [{"cidr": "10.132.0.0/14"}], "may not be repeated"),
    ("spec.networking.allocateNodeCIDRs", "Enabled", "only be Enabled when networkType is Other"),
    ("spec.networking.apiServer.port", 0, "greater than or equal to 1"),
    ("spec.networking.apiServer.advertiseAddress", "nowhere", "advertiseAddress"),
    ("spec.infraID", "Not_Valid", "spec.infraID"),
    ("spec.clusterID", "short", "spec.clusterID"),
    ("spec.etcd", {"managementType": "Managed"}, "managed is required when managementType is Managed"),
    ("spec.etcd", {"managementType": "Unmanaged"}, "unmanaged is required when managementType is Unmanaged"),
    ("spec.etcd.managed.storage.restoreSnapshotURL", ["ftp://x"], "begins with https:// or s3://"),
    ("spec.etcd.managed.storage.persistentVolume.size", "much", "size"),
    ("spec.services", _lb()[:3], "at least 4 entries"),
    ("spec.services", [*_lb(), _lb()[0]], "named only once"),
    ("spec.services", _lb(type="NodePort"), "nodePort is required when type is NodePort"),
    (
        "spec.services",
        _lb(nodePort={"address": "1.2.3.4"}),
        "nodePort is required when type is NodePort, and forbidden",
    ),
    ("spec.services", _lb(route={"hostname": "a.b"}), "route is forbidden unless type is Route"),
    ("spec.services", _lb(type="Route", loadBalancer={"hostname": "a.b"}), "loadBalancer is forbidden unless"),
    ("spec.autoscaling", {"scaling": "ScaleUpOnly", "scaleDown": {}}, "scaleDown can only be set"),
    ("spec.autoscaling.scaleDown", {"utilizationThresholdPercent": 101}, "less than or equal to 100"),
    ("spec.autoscaling.expanders", ["Cheapest"], "Unsupported value"),
    ("spec.capabilities", {"enabled": ["Console"], "disabled": ["Console"]}, "both enabled and disabled"),
    ("spec.capabilities", {"disabled": ["Ingress"]}, "when Console is disabled too"),
    ("spec.capabilities", {"disabled": ["Everything"]}, "Unsupported value"),
    ("spec.configuration.oauth.tokenConfig.accessTokenInactivityTimeout", "10s", "at least 300s"),
    ("spec.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork", True, "when networkType is Other"),
    ("spec.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig.mtu", 100, "greater than or equal to 576"),
    ("spec.secretEncryption", {"type": "aescbc"}, "aescbc is required when type is aescbc"),
    ("spec.secretEncryption", {"type": "rot13"}, "Unsupported value"),
    ("spec.pausedUntil", "tomorrow", "RFC3339"),
    ("spec.olmCatalogPlacement", "moon", "Unsupported value"),
    ("spec.updateService", "no url", "must be a URL"),
    ("spec.kubeAPIServerDNSName", "Not A Name", "kubeAPIServerDNSName"),
    ("spec.dns.baseDomain", "a..b", "baseDomain"),
    ("spec.dns.baseDomainPrefix", "@foo", "baseDomainPrefix"),
    ("spec.services", _lb(type="NodePort", nodePort={"address": "@foo"}), "nodePort.address"),
    ("spec.autoscaling.balancingIgnoredLabels", ["-a"], "label key"),
    ("spec.monitoring.metricsForwarding", {"metricsSet": "All"}, "mode: Required"),
    ("spec.monitoring.metricsForwarding", {"mode": "Forward", "metricsSet": "Some"}, "Unsupported value"),
    (f"{OVN}.v4InternalSubnet", "fd00::/64", "must be an IPv4 range"),
    (f"{OVN}.v4InternalSubnet", "10.0.0.0/31", "/30 at most"),
    (f"{OVN}.v4InternalSubnet", "0.10.0.0/16", "may not be 0"),
    (f"{OVN}.v6InternalSubnet", "fd00::/126", "/125 at most"),
    (f"{OVN}.ipv4", {}, "at least 1 properties"),
    (
        f"{OVN}.ipv4",
        {"internalJoinSubnet": "100.65.0.0/16", "internalTransitSwitchSubnet": "100.65.0.0/16"},
        "must differ",
    ),
    ("spec.configuration.apiServer.audit.profile", "Everything", "Unsupported value"),
    ("spec.configuration.apiServer.audit.customRules", [{"group": "a"}], "profile: Required"),
    ("spec.configuration.image.registrySources", {"blockedRegistries": ["a"], "allowedRegistries": ["b"]}, "only one"),
    ("spec.configuration.network.serviceNodePortRange", "lots", "serviceNodePortRange"),
    ("spec.configuration.scheduler.profile", "Fastest", "Unsupported value"),
    ("spec.configuration.authentication.oidcProviders", [_oidc("http://id.example")], "begin with https://"),
    ("spec.labels", {f"l{i}": "v" for i in range(21)}, "at most 20 items"),
    ("spec.monitoring.metricsForwarding.mode", "Maybe", "Unsupported value"),
    (f"{VIRT}.generateID", "x" * 12, "may not be more than 11"),
    (f"{VIRT}.credentials", {"infraKubeConfigSecret": {"name": "s", "key": "k"}}, "infraNamespace: Required"),
    (f"{VIRT}.storageDriver", {"type": "Default", "manual": {}}, "manual is forbidden unless type is Manual"),
    (f"{VIRT}.storageDriver.type", "Magic", "Unsupported value"),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD_CLUSTER)
async def test_bad_cluster(client: Client, namespace: str, path: str, value: Any, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(support.changed(support.rendered_cluster(namespace, "bad"), path, value), dry_run=True)
    assert words in str(refused.value)


async def test_a_misspelled_setting_is_refused_by_strict_validation(client: Client, namespace: str) -> None:
    cluster = support.changed(support.rendered_cluster(namespace, "bad"), "spec.configuration", {"apiServre": {}})
    path = f"/apis/hypershift.openshift.io/v1beta1/namespaces/{namespace}/hostedclusters"
    with pytest.raises(HcpError, match=r"unknown field.*spec\.configuration\.apiServre"):
        await client.raw("POST", path, params={"fieldValidation": "Strict", "dryRun": "All"}, body=cluster)


async def test_a_snapshot_to_start_from_cannot_be_named_later(client: Client, namespace: str) -> None:
    made = await client.create(support.rendered_cluster(namespace, "begun"))
    late = support.changed(made, "spec.etcd.managed.storage.restoreSnapshotURL", ["s3://bucket/snapshot"])
    with pytest.raises(Invalid, match="cannot be added or removed"):
        await client.replace(late)


async def test_load_balancer_name_may_not_be_a_named_certificate(client: Client, namespace: str) -> None:
    cluster = support.rendered_cluster(namespace, "bad")
    cluster["spec"]["services"] = _lb(loadBalancer={"hostname": "api.example.com"})
    named = [{"names": ["api.example.com"], "servingCertificate": {"name": "c"}}]
    cluster["spec"]["configuration"] = {"apiServer": {"servingCerts": {"namedCertificates": named}}}
    with pytest.raises(Invalid, match="namedCertificates"):
        await client.create(cluster, dry_run=True)


BAD_POOL: list[tuple[str, Any, str]] = [
    ("spec.clusterName", None, "clusterName: Required"),
    ("spec.management", None, "management: Required"),
    ("spec.platform", None, "platform: Required"),
    ("spec.replicas", -1, "greater than or equal to 0"),
    ("spec.autoScaling", {"min": 1, "max": 2}, "exclude each other"),
    ("spec.arch", "riscv64", "Unsupported value"),
    ("spec.arch", "arm64", "arm64 is not supported on KubeVirt"),
    ("spec.management.upgradeType", "Magic", "Unsupported value"),
    ("spec.management.replace.strategy", "Magic", "Unsupported value"),
    ("spec.config", [{"name": f"c{i}"} for i in range(11)], "at most 10 items"),
    ("spec.nodeDrainTimeout", "soon", "nodeDrainTimeout"),
    ("spec.taints", [{"key": "a", "effect": "Maybe"}], "Unsupported value"),
    ("spec.taints", [{"key": "@/a", "effect": "NoSchedule"}], "qualified name"),
    ("spec.taints", [{"key": "a", "value": "@", "effect": "NoSchedule"}], "letters, digits"),
    ("spec.release.image", "", "at least 1 chars"),
    ("spec.release.image", "@ b", "without spaces"),
    ("spec.management.inPlace", {"maxUnavailable": 1}, "only be set when upgradeType is InPlace"),
    (
        "spec.management.replace",
        {"strategy": "OnDelete", "rollingUpdate": {"maxSurge": 1}},
        "only be set when strategy is RollingUpdate",
    ),
    ("spec.pausedUntil", "tomorrow", "RFC3339"),
    (f"{VIRT}.attachDefaultNetwork", False, "only be false when additionalNetworks is not empty"),
    (f"{VIRT}.compute.cores", 0, "greater than or equal to 1"),
    (f"{VIRT}.compute.memory", "lots", "memory"),
    (f"{VIRT}.compute.qosClass", "Best", "Unsupported value"),
    (f"{VIRT}.networkInterfaceMultiqueue", "On", "Unsupported value"),
    (f"{VIRT}.rootVolume.type", "Ephemeral", "Unsupported value"),
    (f"{VIRT}.rootVolume.persistent.accessModes", ["ReadWriteSometimes"], "Unsupported value"),
    (f"{VIRT}.rootVolume.persistent.volumeMode", "Tape", "Unsupported value"),
    (f"{VIRT}.rootVolume.cacheStrategy", {"type": "RAM"}, "Unsupported value"),
    (f"{VIRT}.additionalNetworks", [{"name": f"ns/n{i}"} for i in range(21)], "at most 20 items"),
    (f"{VIRT}.hostDevices", [{"deviceName": "a", "count": 0}], "greater than or equal to 1"),
    (f"{VIRT}.hostDevices", [{"deviceName": f"d{i}"} for i in range(11)], "at most 10 items"),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD_POOL)
async def test_bad_node_pool(client: Client, namespace: str, path: str, value: Any, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(support.changed(support.rendered_pool(namespace, "bad"), path, value), dry_run=True)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("scaling", "words"),
    [({"min": 0, "max": 0}, "greater than or equal to 1"), ({"min": 3, "max": 2}, "max must be equal or greater")],
)
async def test_bad_autoscaling(client: Client, namespace: str, scaling: dict[str, int], words: str) -> None:
    pool = support.changed(support.rendered_pool(namespace, "bad"), "spec.replicas", None)
    with pytest.raises(Invalid, match=words):
        await client.create(support.changed(pool, "spec.autoScaling", scaling), dry_run=True)


async def test_a_pool_of_virtual_machines_may_go_down_to_zero(client: Client, namespace: str) -> None:
    pool = support.changed(support.rendered_pool(namespace, "zero"), "spec.replicas", None)
    pool = support.changed(pool, "spec.autoScaling", {"min": 0, "max": 2})
    await client.create(pool, dry_run=True)
    with pytest.raises(Invalid, match="only be 0 on KubeVirt, AWS and Azure"):
        await client.create(support.changed(pool, "spec.platform", {"type": "Agent"}), dry_run=True)


async def test_s390x_only_on_kubevirt(client: Client, namespace: str) -> None:
    pool = support.changed(support.rendered_pool(namespace, "bad"), "spec.arch", "s390x")
    await client.create(pool, dry_run=True)
    with pytest.raises(Invalid, match="s390x is only supported on KubeVirt"):
        await client.create(support.changed(pool, "spec.platform", {"type": "Agent"}), dry_run=True)


FIXED_IN_CLUSTER: list[tuple[str, Any, str]] = [
    ("spec.infraID", "other-abcde", "infraID is immutable"),
    ("spec.infraID", None, "infraID is immutable and cannot be removed"),
    ("spec.clusterID", None, "clusterID is immutable and cannot be removed"),
    ("spec.clusterID", "11234567-89ab-cdef-0123-456789abcdef", "clusterID is immutable"),
    ("spec.platform.type", "None", "platform.type is immutable"),
    ("spec.networking.networkType", "Other", "networkType is immutable"),
    ("spec.networking.clusterNetwork", [{"cidr": "10.1.0.0/16"}], "clusterNetwork is immutable"),
    ("spec.networking.serviceNetwork", [{"cidr": "10.1.0.0/16"}], "serviceNetwork is immutable"),
    ("spec.services", _lb(type="Route"), "services is immutable"),
    ("spec.fips", True, "fips is immutable"),
    ("spec.olmCatalogPlacement", "guest", "olmCatalogPlacement is immutable"),
    ("spec.secretEncryption", None, "secretEncryption cannot be removed"),
    ("spec.capabilities", {"disabled": ["Console"]}, "capabilities is immutable"),
    ("spec.etcd.managed.storage.persistentVolume.size", "9Gi", "size is immutable"),
    ("spec.etcd.managed.storage.persistentVolume.storageClassName", "fast", "storageClassName is immutable"),
    ("spec.issuerURL", "https://other.example.com", "issuerURL is immutable"),
    ("spec.dns.baseDomain", "other.example.com", "baseDomain is immutable"),
    ("spec.dns.baseDomain", None, "baseDomain is immutable"),
    (f"{VIRT}.baseDomainPassthrough", False, "baseDomainPassthrough is immutable"),
    (f"{VIRT}.generateID", None, "generateID is immutable"),
    (f"{VIRT}.generateID", "other", "generateID is immutable"),
    (f"{VIRT}.credentials", {"infraNamespace": "vms"}, "credentials is immutable"),
    (f"{VIRT}.storageDriver.type", "None", "storageDriver.type is immutable"),
]


async def test_fixed_fields_of_a_cluster(client: Client, namespace: str) -> None:
    cluster = support.rendered_cluster(namespace)
    cluster["spec"]["clusterID"] = "01234567-89ab-cdef-0123-456789abcdef"
    cluster["spec"]["dns"]["baseDomain"] = "lab.example.com"
    cluster["spec"]["platform"]["kubevirt"].update(generateID="abc", storageDriver={"type": "Default"})
    made = await client.create(cluster)
    for path, value, words in FIXED_IN_CLUSTER:
        with pytest.raises(Invalid) as refused:
            await client.replace(support.changed(made, path, value))
        assert words in str(refused.value), path


async def test_what_the_operator_fills_in_later_is_allowed(client: Client, namespace: str) -> None:
    cluster = support.changed(support.rendered_cluster(namespace), "spec.infraID", None)
    made = await client.create(support.changed(cluster, "spec.platform.kubevirt", {}))
    made["spec"]["infraID"] = "demo-bcdfg"
    made["spec"]["clusterID"] = "01234567-89ab-cdef-0123-456789abcdef"
    made["spec"]["dns"]["baseDomain"] = "apps.example.com"
    made["spec"]["networking"]["allocateNodeCIDRs"] = "Disabled"
    made["spec"]["platform"]["kubevirt"].update(generateID="abc", baseDomainPassthrough=True)
    again = await client.replace(made)
    again["spec"]["release"]["image"] = "quay.io/x/y:4.20.2"
    again = await client.replace(again)
    again["spec"]["controllerAvailabilityPolicy"] = "SingleReplica"
    again = await client.replace(again)
    again["spec"]["controllerAvailabilityPolicy"] = "HighlyAvailable"
    await client.replace(again)


async def test_fixed_fields_of_a_node_pool(client: Client, namespace: str) -> None:
    made = await client.create(support.rendered_pool(namespace))
    for path, value in (
        ("spec.clusterName", "other"),
        ("spec.arch", "ppc64le"),
        ("spec.management.upgradeType", "InPlace"),
        ("spec.platform.type", "None"),
    ):
        with pytest.raises(Invalid, match="is immutable"):
            await client.replace(support.changed(made, path, value))


async def test_a_node_pool_can_be_scaled(client: Client, namespace: str) -> None:
    await client.create(support.rendered_pool(namespace))
    await client.patch(r.NODEPOOLS, "demo", namespace, {"status": {"replicas": 1}}, subresource="status")
    path = r.NODEPOOLS.path(namespace, "demo", "scale")
    scale = await client.raw("GET", path)
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 1)
    await client.patch(r.NODEPOOLS, "demo", namespace, {"spec": {"replicas": 5}}, subresource="scale")
    assert (await client.get(r.NODEPOOLS, "demo", namespace))["spec"]["replicas"] == 5


async def test_columns_of_the_list(client: Client, namespace: str) -> None:
    await client.create(support.rendered_cluster(namespace))
    now = "2030-01-01T00:00:00Z"
    done = {"state": "Completed", "startedTime": now, "completionTime": now, "version": "1.36.3", "image": "x"}
    ready = {
        "type": "Available",
        "status": "True",
        "reason": "AsExpected",
        "message": "fine",
        "lastTransitionTime": now,
    }
    status = {"version": {"history": [done]}, "conditions": [ready], "kubeconfig": {"name": "demo-admin-kubeconfig"}}
    await client.patch(r.HOSTEDCLUSTERS, "demo", namespace, {"status": status}, subresource="status")
    crd = await client.get(r.CRDS, "hostedclusters.hypershift.openshift.io")
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [one["name"] for one in columns if one.get("priority", 0) == 0] == [
        "Version",
        "KubeConfig",
        "Progress",
        "Available",
        "Progressing",
        "Message",
    ]


async def test_a_control_plane_projection_takes_the_clusters_spec(client: Client, namespace: str) -> None:
    spec = support.rendered_cluster(namespace)["spec"]
    image = spec.pop("release")["image"]
    made = await client.create(
        {
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedControlPlane",
            "metadata": {"name": "demo", "namespace": namespace},
            "spec": {**spec, "releaseImage": image, "kubeconfig": {"name": "k", "key": "kubeconfig"}},
        }
    )
    status = {"ready": True, "initialized": True, "controlPlaneEndpoint": {"host": "a", "port": 6443}}
    patched = await client.patch(
        r.HOSTEDCONTROLPLANES, made["metadata"]["name"], namespace, {"status": status}, subresource="status"
    )
    assert patched["status"] == {**status, "externalManagedControlPlane": True}
