"""The settings inside say what the HostedCluster says."""

from __future__ import annotations

from typing import Any

from tests.support.unit.hostedcluster import cluster

from hcp.guest.platform import settings

TOLD = {"controlPlaneEndpoint": {"host": "10.88.0.65", "port": 6443}}


def found(**spec: Any) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in settings.manifests(cluster(**spec), TOLD)}


def test_the_infrastructure_is_named() -> None:
    status = found(infraID="demo-x1")["Infrastructure"]["status"]
    assert (status["platform"], status["infrastructureName"]) == ("KubeVirt", "demo-x1")
    assert status["apiServerURL"] == "https://10.88.0.65:6443"
    assert status["apiServerInternalURI"] == "https://172.20.0.1:6443"
    assert status["controlPlaneTopology"] == "External"


def test_the_network_that_runs_is_told_beside_the_one_that_was_asked_for() -> None:
    network = found()["Network"]
    assert network["spec"]["networkType"] == "OVNKubernetes"
    assert network["status"]["networkType"] == "Flannel"
    assert network["status"]["clusterNetwork"] == [{"cidr": "10.132.0.0/14"}]
    other = found(networking={"networkType": "Other"})["Network"]
    assert other["status"]["networkType"] == "Other"


def test_routes_lie_below_the_cluster_s_own_domain() -> None:
    assert found(dns={"baseDomain": "apps.mgmt.test"})["Ingress"]["spec"]["domain"] == "apps.demo.apps.mgmt.test"
    prefixed = {"baseDomain": "example.com", "baseDomainPrefix": "blue"}
    assert found(dns=prefixed)["Ingress"]["spec"]["domain"] == "apps.blue.example.com"
    without = {"baseDomain": "example.com", "baseDomainPrefix": ""}
    assert found(dns=without)["Ingress"]["spec"]["domain"] == "apps.example.com"
    assert "domain" not in found(dns={})["Ingress"]["spec"]


def test_a_proxy_is_told_and_its_trust_is_not_repeated() -> None:
    given = {"httpsProxy": "http://proxy.test:3128", "noProxy": ".test", "trustedCA": {"name": "own"}}
    proxy = found(configuration={"proxy": given})["Proxy"]
    assert proxy["spec"] == given
    assert proxy["status"] == {"httpsProxy": "http://proxy.test:3128", "noProxy": ".test"}
