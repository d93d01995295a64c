"""`create nodepool kubevirt --render`: needs no cluster."""

from __future__ import annotations

import yaml
from tests.support.unit.cli_lines import run


def test_a_pool_as_yaml() -> None:
    words = ("create", "nodepool", "kubevirt", "--render", "--name=big", "--cluster-name=demo", "-n", "tenants")
    result = run(*words, "--replicas=3", "--memory=16Gi", "--cores=0x8", "--auto-repair", "--kubeconfig=/nowhere")
    assert result.code == 0
    assert "rendered" in result.err
    assert "---" not in result.out
    assert yaml.safe_load(result.out) == {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "big", "namespace": "tenants"},
        "spec": {
            "arch": "amd64",
            "clusterName": "demo",
            "management": {"autoRepair": True, "upgradeType": "Replace"},
            "platform": {
                "kubevirt": {
                    "attachDefaultNetwork": True,
                    "compute": {"cores": 8, "memory": "16Gi"},
                    "networkInterfaceMultiqueue": "Enable",
                    "rootVolume": {"persistent": {"size": "32Gi"}, "type": "Persistent"},
                },
                "type": "KubeVirt",
            },
            "replicas": 3,
        },
        "status": {"replicas": 0},
    }


def test_the_release_is_written_when_named() -> None:
    words = ("create", "nodepool", "kubevirt", "--render", "--name=big", "--cluster-name=demo", "--release-image=r/x:1")
    assert yaml.safe_load(run(*words).out)["spec"]["release"] == {"image": "r/x:1"}


def test_deprecated_count_and_other_defaults() -> None:
    result = run("create", "nodepool", "kubevirt", "--render", "--node-count=5", prog="hypershift")
    assert result.code == 0
    assert "Flag --node-count has been deprecated" in result.err
    assert "cluster called example" in result.err
    pool = yaml.safe_load(result.out)
    assert pool["spec"]["replicas"] == 5
    assert pool["metadata"]["name"] == pool["spec"]["clusterName"] == "example"
