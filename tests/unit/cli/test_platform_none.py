"""Clusters and pools for machines of one's own, rendered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.unit.cli_lines import PULL_SECRET, Result, run

ADDRESS = "--external-api-server-address=192.0.2.10"


def render(tmp_path: Path, *words: str, prog: str = "hcp") -> Result:
    secret = tmp_path / "ps"
    secret.write_text(PULL_SECRET)
    base = (
        "create",
        "cluster",
        "none",
        "--name=example",
        f"--pull-secret={secret}",
        "--render",
        "--infra-id=example-x",
    )
    result = run(*base, *words, prog=prog)
    assert result.code == 0, result.err
    return result


def test_the_documents_are_those_of_the_established_client(tmp_path: Path) -> None:
    result = render(tmp_path, ADDRESS, prog="hypershift")
    spec = result.one("HostedCluster")["spec"]
    ports = {"type": "NodePort", "nodePort": {"address": "192.0.2.10"}}
    services = ("APIServer", "Ignition", "Konnectivity", "OAuthServer", "OIDC")
    assert spec == {
        "autoscaling": {},
        "capabilities": {},
        "configuration": {},
        "controllerAvailabilityPolicy": "SingleReplica",
        "dns": {"baseDomain": "example.com"},
        "etcd": {
            "managed": {"storage": {"persistentVolume": {"size": "8Gi"}, "type": "PersistentVolume"}},
            "managementType": "Managed",
        },
        "fips": False,
        "infraID": "example-x",
        "networking": {
            "clusterNetwork": [{"cidr": "10.132.0.0/14"}],
            "networkType": "OVNKubernetes",
            "serviceNetwork": [{"cidr": "172.31.0.0/16"}],
        },
        "olmCatalogPlacement": "management",
        "platform": {"type": "None"},
        "pullSecret": {"name": "example-pull-secret"},
        "release": {"image": ""},
        "secretEncryption": {"aescbc": {"activeKey": {"name": "example-etcd-encryption-key"}}, "type": "aescbc"},
        "services": [{"service": name, "servicePublishingStrategy": ports} for name in services],
        "sshKey": {},
    }
    assert result.one("NodePool")["spec"] == {
        "arch": "amd64",
        "clusterName": "example",
        "management": {"autoRepair": False, "upgradeType": "InPlace"},
        "nodeDrainTimeout": "0s",
        "nodeVolumeDetachTimeout": "0s",
        "platform": {"type": "None"},
        "release": {"image": ""},
        "replicas": 0,
    }


def published(result: Result) -> dict[str, Any]:
    services = result.one("HostedCluster")["spec"]["services"]
    return {entry["service"]: entry["servicePublishingStrategy"]["type"] for entry in services}


def test_publishing(tmp_path: Path) -> None:
    balanced = published(render(tmp_path, "--expose-through-load-balancer"))
    assert balanced == dict.fromkeys(("Ignition", "Konnectivity", "OAuthServer"), "Route") | {
        "APIServer": "LoadBalancer"
    }
    # As there: an address wins.
    assert set(published(render(tmp_path, "--expose-through-load-balancer", ADDRESS)).values()) == {"NodePort"}
    empty = render(tmp_path)
    assert set(published(empty).values()) == {"NodePort"}
    assert "--external-api-server-address" in empty.err


def test_a_domain_a_pool_without_machines_and_no_pool(tmp_path: Path) -> None:
    result = render(tmp_path, ADDRESS, "--base-domain=lab.local", "--node-pool-replicas=3", "--arch=ARM64")
    assert result.one("HostedCluster")["spec"]["dns"] == {"baseDomain": "lab.local"}
    assert result.one("NodePool")["spec"]["replicas"] == 3
    assert result.one("NodePool")["spec"]["arch"] == "arm64"
    without = render(tmp_path, ADDRESS, "--node-pool-replicas=-1")
    assert "NodePool" not in {document["kind"] for document in without.documents()}


@pytest.mark.parametrize("flag", ["--auto-repair", "--node-upgrade-type=Replace", "--node-drain-timeout=5m"])
def test_what_only_the_owner_of_machines_can_do_is_warned_about(tmp_path: Path, flag: str) -> None:
    result = render(tmp_path, ADDRESS, flag)
    assert f"{flag.partition('=')[0]} has no effect: machines are your own" in result.err


@pytest.mark.parametrize("flag", ["--memory=4Gi", "--infra-namespace=x", "--host-device-name=gpu"])
def test_there_are_no_flags_about_virtual_machines(flag: str) -> None:
    result = run("create", "cluster", "none", "--name=x", "--render", flag)
    assert result.code == 1 and "unknown flag" in result.err


def test_a_pool_of_its_own() -> None:
    words = ("create", "nodepool", "none", "--render", "--name=edge", "--cluster-name=demo", "--release-image=r/x:1")
    [pool] = run(*words, "--replicas=2").documents()
    assert pool["spec"] == {
        "arch": "amd64",
        "clusterName": "demo",
        "management": {"autoRepair": False, "upgradeType": "InPlace"},
        "platform": {"type": "None"},
        "release": {"image": "r/x:1"},
        "replicas": 2,
    }


@pytest.mark.parametrize(
    "words", [["--hostname=Upper"], ["--hostname=a.b"], ["--hostname=x", "--ignition", "-o=f"], []]
)
def test_drives_for_impossible_machines_are_refused_before_anything_is_asked(words: list[str]) -> None:
    result = run("create", "config-drive", "--nodepool=demo", "--kubeconfig=/nowhere", *words)
    assert result.code == 1
    assert "hostname" in result.err or "ignition" in result.err
