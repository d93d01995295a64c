"""`create cluster kubevirt --render`: the documents, to the letter."""

from __future__ import annotations

import base64
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.support.unit.cli_lines import PULL_SECRET, render, run

INFRA = "apiVersion: v1\nkind: Config\nclusters:\n- name: infra\n  cluster: {server: https://infra.example.com}\n"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
GOLDEN = (Path(__file__).parent / "golden_cluster.yaml").read_text()


def kubevirt(tmp_path: Path, *words: str) -> Any:
    result = render(tmp_path, *words)
    assert result.code == 0, result.err
    return result.one("NodePool")["spec"]["platform"]["kubevirt"]


def spec(tmp_path: Path, *words: str, prog: str = "hcp") -> Any:
    result = render(tmp_path, *words, prog=prog)
    assert result.code == 0, result.err
    return result.one("HostedCluster")["spec"]


def test_worked_example_to_the_letter(tmp_path: Path) -> None:
    infra = tmp_path / "infra.kubeconfig"
    infra.write_text(INFRA)
    result = render(
        tmp_path,
        *("--namespace", "tenants", "--node-pool-replicas", "3", "--memory", "8192Mi", "--cores", "4"),
        *("--root-volume-size", "64", "--root-volume-storage-class", "rbd", "--qos-class", "Guaranteed"),
        *("--host-device-name", "nvidia-a100,count:2", "--vm-node-selector", "zone=a"),
        *("--infra-storage-class-mapping", "rbd/gold,group=g1"),
        *("--infra-volumesnapshot-class-mapping", "rbdsnap/goldsnap,group=g1"),
        *("--infra-namespace", "demo-vms", "--infra-kubeconfig-file", str(infra), "--base-domain", "lab.local"),
        *("--release-image", "quay.io/x/y:4.20.1", "--toleration", "key=cp,operator=exists,effect=noschedule"),
        *("--node-drain-timeout", "5m", "--infra-id", "demo-abcde", "--render-sensitive"),
    )
    key = result.documents()[3]["data"]["key"]
    assert len(base64.b64decode(key)) == 32
    expected = GOLDEN.replace("PULL_SECRET", base64.b64encode(PULL_SECRET.encode()).decode())
    expected = expected.replace("INFRA_KUBECONFIG", base64.b64encode(INFRA.encode()).decode())
    assert result.out == expected.replace("ETCD_KEY", key)


def test_defaults_of_a_bare_cluster(tmp_path: Path) -> None:
    result = render(tmp_path)
    assert [document["kind"] for document in result.documents()] == ["Namespace", "HostedCluster", "NodePool"]
    assert "--release-image" in result.err
    assert "demo-pull-secret, demo-etcd-encryption-key" in result.err
    cluster = result.one("HostedCluster")
    infra_id = cluster["spec"].pop("infraID")
    assert re.fullmatch("demo-[bcdfghjklmnpqrstvwxz2456789]{5}", infra_id)
    assert cluster["spec"] == {
        "autoscaling": {},
        "capabilities": {},
        "configuration": {},
        "controllerAvailabilityPolicy": "HighlyAvailable",
        "dns": {"baseDomain": ""},
        "etcd": {
            "managed": {"storage": {"persistentVolume": {"size": "8Gi"}, "type": "PersistentVolume"}},
            "managementType": "Managed",
        },
        "fips": False,
        "networking": {
            "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
            "networkType": "OVNKubernetes",
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        },
        "olmCatalogPlacement": "management",
        "platform": {"kubevirt": {"baseDomainPassthrough": True}, "type": "KubeVirt"},
        "pullSecret": {"name": "demo-pull-secret"},
        "release": {"image": ""},
        "secretEncryption": {"aescbc": {"activeKey": {"name": "demo-etcd-encryption-key"}}, "type": "aescbc"},
        "services": [
            {"service": name, "servicePublishingStrategy": {"type": kind}}
            for name, kind in {
                "APIServer": "LoadBalancer",
                "Ignition": "Route",
                "Konnectivity": "Route",
                "OAuthServer": "Route",
            }.items()
        ],
        "sshKey": {},
    }
    assert cluster["status"] == {"controlPlaneEndpoint": {"host": "", "port": 0}}
    assert result.one("NodePool") == {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "demo", "namespace": "clusters"},
        "spec": {
            "arch": "amd64",
            "clusterName": "demo",
            "management": {"autoRepair": False, "upgradeType": "Replace"},
            "nodeDrainTimeout": "0s",
            "nodeVolumeDetachTimeout": "0s",
            "platform": {
                "kubevirt": {
                    "attachDefaultNetwork": True,
                    "compute": {"cores": 2, "memory": "4Gi"},
                    "networkInterfaceMultiqueue": "Enable",
                    "rootVolume": {"persistent": {"size": "32Gi"}, "type": "Persistent"},
                },
                "type": "KubeVirt",
            },
            "release": {"image": ""},
            "replicas": 0,
        },
        "status": {"replicas": 0},
    }
    assert result.out.endswith("\n---\n")


def test_the_other_name_has_its_own_defaults(tmp_path: Path) -> None:
    assert spec(tmp_path, prog="hypershift")["controllerAvailabilityPolicy"] == "SingleReplica"


def test_no_node_pool_below_zero(tmp_path: Path) -> None:
    kinds = [document["kind"] for document in render(tmp_path, "--node-pool-replicas=-1").documents()]
    assert "NodePool" not in kinds


def test_secrets_only_when_asked_for(tmp_path: Path) -> None:
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAA me\n")
    bundle = tmp_path / "ca.pem"
    bundle.write_text("// Registry CA\n" + PEM + "\n" + PEM)
    words = ("--ssh-key", str(key), "--additional-trust-bundle", str(bundle), "--render-sensitive")
    documents = render(tmp_path, *words).documents()
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert names == [
        ("Namespace", "clusters"),
        ("ConfigMap", "user-ca-bundle"),
        ("Secret", "demo-pull-secret"),
        ("Secret", "demo-ssh-key"),
        ("Secret", "demo-etcd-encryption-key"),
        ("HostedCluster", "demo"),
        ("NodePool", "demo"),
    ]
    assert documents[1]["data"]["ca-bundle.crt"] == bundle.read_text()
    assert "type" not in documents[2] and documents[4]["type"] == "Opaque"
    for secret in documents[2:5]:
        assert secret["metadata"]["labels"] == {"hypershift.openshift.io/safe-to-delete-with-cluster": "true"}
    assert base64.b64decode(documents[3]["data"]["id_rsa.pub"]).decode() == key.read_text()
    assert documents[5]["spec"]["sshKey"] == {"name": "demo-ssh-key"}
    assert documents[5]["spec"]["additionalTrustBundle"] == {"name": "user-ca-bundle"}


def test_files_with_secrets_are_private(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    out.write_text("old")
    out.chmod(0o644)
    result = render(tmp_path, "--render-into", str(out), "--render-sensitive")
    assert result.code == 0 and result.out == ""
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert "demo-pull-secret" in out.read_text()


def test_render_into_alone_renders(tmp_path: Path) -> None:
    pull_secret = tmp_path / "ps"
    pull_secret.write_text('{"auths": {}}')
    out = tmp_path / "out.yaml"
    words = ("create", "cluster", "kubevirt", "--name=demo", f"--pull-secret={pull_secret}", f"--render-into={out}")
    assert run(*words, "--kubeconfig=/nowhere").code == 0
    assert "kind: HostedCluster" in out.read_text()


def test_everything_about_the_control_plane(tmp_path: Path) -> None:
    sources = tmp_path / "ics.yaml"
    sources.write_text("- source: quay.io/a\n  mirrors: [mirror.lab/a]\n  other: 1\n")
    found = spec(
        tmp_path,
        "--infra-availability-policy=HighlyAvailable",
        "--etcd-storage-class=fast",
        "--etcd-storage-size=16384Mi",
        "--node-selector=role=cp,zone=a",
        "--pods-labels=team=x",
        "--toleration=key=a,value=b,operator=equal,effect=NOEXECUTE,tolerationSeconds=-3",
        "--fips",
        "--feature-set=TechPreviewNoUpgrade",
        "--disable-cluster-capabilities=Console,Ingress",
        "--enable-cluster-capabilities=baremetal",
        "--olm-catalog-placement=GUEST",
        "--olm-disable-default-sources",
        "--kas-dns-name=api.lab.local",
        "--network-type=Other",
        "--cluster-cidr=10.1.2.3/14",
        "--cluster-cidr=fd01::/48",
        "--service-cidr=172.30.0.0/16",
        "--machine-cidr=192.168.0.0/24",
        "--allocate-node-cidrs",
        "--disable-multi-network",
        "--external-dns-domain=dns.lab",
        "--pausedUntil=true",
        f"--image-content-sources={sources}",
    )
    assert found["infrastructureAvailabilityPolicy"] == "HighlyAvailable"
    assert found["etcd"]["managed"]["storage"]["persistentVolume"] == {"size": "16Gi", "storageClassName": "fast"}
    assert found["nodeSelector"] == {"role": "cp", "zone": "a"}
    assert found["labels"] == {"team": "x"}
    assert found["tolerations"] == [
        {"key": "a", "value": "b", "operator": "Equal", "effect": "NoExecute", "tolerationSeconds": -3}
    ]
    assert found["fips"] is True
    assert found["configuration"] == {
        "featureGate": {"featureSet": "TechPreviewNoUpgrade"},
        "operatorhub": {"disableAllDefaultSources": True},
    }
    assert found["capabilities"] == {"disabled": ["Console", "Ingress"], "enabled": ["baremetal"]}
    assert found["olmCatalogPlacement"] == "guest"
    assert found["kubeAPIServerDNSName"] == "api.lab.local"
    assert found["networking"] == {
        "networkType": "Other",
        "clusterNetwork": [{"cidr": "10.1.2.3/14"}, {"cidr": "fd01::/48"}],
        "serviceNetwork": [{"cidr": "172.30.0.0/16"}],
        "machineNetwork": [{"cidr": "192.168.0.0/24"}],
        "allocateNodeCIDRs": "Enabled",
    }
    assert found["operatorConfiguration"] == {"clusterNetworkOperator": {"disableMultiNetwork": True}}
    assert found["services"][0] == {"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}
    assert found["imageContentSources"] == [{"source": "quay.io/a", "mirrors": ["mirror.lab/a"]}]
    assert found["pausedUntil"] == "true"


def test_both_families_by_one_word(tmp_path: Path) -> None:
    networking = spec(tmp_path, "--default-dual")["networking"]
    assert networking["clusterNetwork"] == [{"cidr": "10.132.0.0/14"}, {"cidr": "fd01::/48"}]
    assert networking["serviceNetwork"] == [{"cidr": "172.31.0.0/16"}, {"cidr": "fd02::/112"}]


def test_mtu(tmp_path: Path) -> None:
    found = spec(tmp_path, "--ovn-kubernetes-mtu=9000")
    assert found["operatorConfiguration"] == {"clusterNetworkOperator": {"ovnKubernetesConfig": {"mtu": 9000}}}


def test_annotations_and_labels(tmp_path: Path) -> None:
    variants = "hypershift.openshift.io/allow-unsupported-kubevirt-rhcos-variants"
    result = render(tmp_path, "--annotations=a/b=c=d,e", f"--annotations={variants}=true", "--labels=team=x")
    assert result.one("HostedCluster")["metadata"]["annotations"] == {"a/b": "c=d,e", variants: "true"}
    assert result.one("HostedCluster")["metadata"]["labels"] == {"team": "x"}
    assert result.one("NodePool")["metadata"]["annotations"] == {variants: "true"}


def test_flags_of_the_other_name(tmp_path: Path) -> None:
    words = ("--service-publishing-strategy=NodePort", "--control-plane-operator-image=cpo", "--containerdisk=disk")
    result = render(tmp_path, *words, "--api-server-address=10.0.0.1", prog="hypershift")
    cluster = result.one("HostedCluster")
    assert [service["service"] for service in cluster["spec"]["services"]] == [
        "APIServer",
        "Ignition",
        "Konnectivity",
        "OAuthServer",
        "OIDC",
    ]
    strategy = {"type": "NodePort", "nodePort": {"address": "10.0.0.1"}}
    assert all(service["servicePublishingStrategy"] == strategy for service in cluster["spec"]["services"])
    assert cluster["metadata"]["annotations"] == {"hypershift.openshift.io/control-plane-operator-image": "cpo"}
    volume = result.one("NodePool")["spec"]["platform"]["kubevirt"]["rootVolume"]
    assert volume["diskImage"] == {"containerDiskImage": "disk"}


def test_workers(tmp_path: Path) -> None:
    found = kubevirt(
        tmp_path,
        "--root-volume-access-modes=ReadWriteMany,ReadWriteOnce",
        "--root-volume-volume-mode=Block",
        "--root-volume-cache-strategy=PVC",
        "--additional-network=name:ns/nad",
        "--additional-network=name:ns/two",
        "--attach-default-network=false",
        "--root-volume-size=1024",
    )
    assert found["rootVolume"] == {
        "type": "Persistent",
        "persistent": {"size": "1Ti", "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "volumeMode": "Block"},
        "cacheStrategy": {"type": "PVC"},
    }
    assert found["additionalNetworks"] == [{"name": "ns/nad"}, {"name": "ns/two"}]
    assert found["attachDefaultNetwork"] is False


def test_a_host_device_without_count_is_one(tmp_path: Path) -> None:
    assert kubevirt(tmp_path, "--host-device-name=gpu")["hostDevices"] == [{"deviceName": "gpu", "count": 1}]


def test_multiqueue_can_be_disabled(tmp_path: Path) -> None:
    assert kubevirt(tmp_path, "--network-multiqueue=Disable")["networkInterfaceMultiqueue"] == "Disable"
    assert "networkInterfaceMultiqueue" not in kubevirt(tmp_path, "--network-multiqueue=")


@pytest.mark.parametrize("value", ["true", "2030-01-31T12:00:00Z"])
def test_pausing_pauses_both(tmp_path: Path, value: str) -> None:
    result = render(tmp_path, f"--pausedUntil={value}")
    assert result.one("HostedCluster")["spec"]["pausedUntil"] == value
    assert result.one("NodePool")["spec"]["pausedUntil"] == value


def test_architecture_is_normalised(tmp_path: Path) -> None:
    assert render(tmp_path, "--arch=AMD64").one("NodePool")["spec"]["arch"] == "amd64"


def test_generated_ssh_key(tmp_path: Path) -> None:
    documents = render(tmp_path, "--generate-ssh", "--render-sensitive").documents()
    data = next(d for d in documents if d["metadata"]["name"] == "demo-ssh-key")["data"]
    assert base64.b64decode(data["id_rsa.pub"]).startswith(b"ssh-rsa ")
    assert base64.b64decode(data["id_rsa"]).startswith(b"-----BEGIN RSA PRIVATE KEY-----")


def test_node_ports_without_an_address_are_warned_about(tmp_path: Path) -> None:
    result = render(tmp_path, "--service-publishing-strategy=NodePort", prog="hypershift")
    assert result.code == 0
    assert "--api-server-address" in result.err
    service = result.one("HostedCluster")["spec"]["services"][0]
    assert service["servicePublishingStrategy"]["nodePort"] == {"address": ""}
