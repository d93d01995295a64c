from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.unit.hostedcluster import SERVICES, cluster

from hcp.hostedcluster import ignored_fields, validation


def network(**fields: Any) -> dict[str, Any]:
    return {"networking": {"clusterNetwork": [{"cidr": "10.132.0.0/14"}], **fields}}


def test_a_usual_cluster_has_no_problems() -> None:
    assert validation.problems(cluster()) == []
    assert validation.unsupported(cluster()["spec"]) == []
    assert ignored_fields.not_acted_on(cluster()["spec"]) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (network(serviceNetwork=[{"cidr": "10.133.0.0/16"}]), "overlaps"),
        (network(serviceNetwork=[{"cidr": "nonsense"}]), "is not a network"),
        (network(serviceNetwork=[{"cidr": "fd00::/112"}]), "different IP families"),
        (network(machineNetwork=[{"cidr": "172.31.1.0/24"}]), "overlaps"),
        (network(apiServer={"advertiseAddress": "10.132.0.1"}), "lies in networking.clusterNetwork"),
        (network(apiServer={"advertiseAddress": "here"}), "is not an IP address"),
        (network(apiServer={"advertiseAddress": "fd00::5"}), "not of the IP family"),
        (network(serviceNetwork=[{"cidr": "172.30.0.0/16"}, {"cidr": "172.29.0.0/16"}]), "two ranges of IPv4"),
        (network(serviceNetwork=[{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}]), "has IPv6, which"),
    ],
)
def test_networks(spec: dict[str, Any], text: str) -> None:
    assert any(text in p for p in validation.problems(cluster(**spec)))


@pytest.mark.parametrize("services", [["172.31.0.0/16"], ["172.31.0.0/16", "fd02::/112"]])
def test_two_families_are_no_problem(services: list[str]) -> None:
    pods = [{"cidr": "10.132.0.0/14"}, {"cidr": "fd01::/48"}]
    spec = {"networking": {"clusterNetwork": pods, "serviceNetwork": [{"cidr": one} for one in services]}}
    assert validation.problems(cluster(**spec)) == []


def publish(service: str, **strategy: Any) -> dict[str, Any]:
    kept = [s for s in SERVICES if s["service"] != service]
    return {"services": [*kept, {"service": service, "servicePublishingStrategy": strategy}]}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (publish("APIServer", type="NodePort", nodePort={"address": "1.2.3.4", "port": 80}), "is not between"),
        (publish("APIServer", type="NodePort", nodePort={"address": "172.31.0.9"}), "lies in networking.service"),
        (publish("APIServer", type="NodePort", nodePort={}), "without an address"),
    ],
)
def test_services(spec: dict[str, Any], text: str) -> None:
    assert any(text in p for p in validation.problems(cluster(**spec)))


def test_same_host_names_and_missing_routes() -> None:
    twice = [
        {"service": s, "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "x.example"}}}
        for s in ("Konnectivity", "Ignition")
    ]
    assert any("same host name" in p for p in validation.problems(cluster(services=twice)))
    assert any("has no Routes" in p for p in validation.problems(cluster(), has_routes=False))


def test_the_older_of_two_clusters_keeps_the_name() -> None:
    mine = cluster(infraID="x-1")
    other = copy.deepcopy(mine)
    other["metadata"] |= {"uid": "uid-0", "namespace": "clusters", "name": "other"}
    assert any("infraID x-1 is already used" in p for p in validation.problems(mine, [other, mine]))
    other["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    assert validation.problems(mine, [other, mine]) == []


def test_ambiguous_hosted_namespaces() -> None:
    mine, other = cluster(), cluster()
    mine["metadata"] |= {"namespace": "a", "name": "b-c"}
    other["metadata"] |= {"namespace": "a-b", "name": "c", "uid": "uid-0"}
    assert any("belongs to HostedCluster a-b/c" in p for p in validation.problems(mine, [other]))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"platform": {"type": "AWS"}}, "platform AWS"),
        ({"secretEncryption": {"type": "kms"}}, "kms"),
    ],
)
def test_unsupported(spec: dict[str, Any], text: str) -> None:
    assert any(text in p for p in validation.unsupported(cluster(**spec)["spec"]))


def test_fields_without_effect_are_named() -> None:
    providers = {"identityProviders": [{"name": "x"}], "templates": {"login": {"name": "page"}}}
    spec = cluster(fips=True, configuration={"oauth": providers})["spec"]
    assert ignored_fields.not_acted_on(spec) == ["configuration.oauth.templates", "fips"]
    assert ignored_fields.login_not_in_release(spec) == ["configuration.oauth.identityProviders"]
    assert ignored_fields.not_acted_on(cluster(fips=False, configuration={"oauth": {}})["spec"]) == []


def test_the_domain_of_new_routes_acts_where_there_is_a_router_and_the_rest_of_ingress_is_named() -> None:
    one = {"appsDomain": "apps.bank.test", "requiredHSTSPolicies": [{"domainPatterns": ["*.bank.test"]}]}
    spec = cluster(configuration={"ingress": one})["spec"]
    assert ignored_fields.not_acted_on(spec) == ["configuration.ingress.requiredHSTSPolicies"]
    (told,) = ignored_fields.ingress_not_in_release(spec)
    assert told.startswith("configuration.ingress.appsDomain") and "the release has no ingress" in told


def test_whom_an_api_lets_in_is_said_where_nobody_can_be_kept_out() -> None:
    networking = {**cluster()["spec"]["networking"], "apiServer": {"allowedCIDRBlocks": ["192.0.2.0/24"]}}
    for kind, words in (("LoadBalancer", ""), ("Route", "published by Route"), ("NodePort", "published by NodePort")):
        services = [{"service": "APIServer", "servicePublishingStrategy": {"type": kind}}]
        told = ignored_fields.not_acted_on(cluster(networking=networking, services=services)["spec"])
        assert bool(told) == bool(words) and words in "".join(told)


def test_an_etcd_holds_one_cluster() -> None:
    def on(endpoint: str) -> dict[str, Any]:
        return cluster(etcd={"managementType": "Unmanaged", "unmanaged": {"endpoint": endpoint}})

    mine, other = on("https://etcd.example.com:2379"), on("https://ETCD.example.com:2379/")
    other["metadata"] |= {"name": "older", "uid": "uid-0"}
    other["spec"]["infraID"] = "another"
    assert any("holds the data of HostedCluster" in p for p in validation.problems(mine, [other]))
    other["spec"]["etcd"]["unmanaged"]["endpoint"] = "https://other.example.com:2379"
    assert validation.problems(mine, [other]) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "x", "fd00::/64"]), max_size=4))
def test_validation_never_fails_by_itself(networks: list[str]) -> None:
    lists = [{"cidr": n} for n in networks]
    validation.problems(cluster(**network(serviceNetwork=lists, machineNetwork=lists)))


def test_annotations_that_change_nothing_are_named() -> None:
    asked = {
        "hypershift.openshift.io/topology": "dedicated-request-serving-components",
        "idpoverrides.hypershift.openshift.io/github": "{}",
        "hypershift.openshift.io/restart-date": "today",
        "example.com/own": "of no interest",
    }
    told = ignored_fields.ignored_annotations(asked)
    assert told == [
        "annotation hypershift.openshift.io/topology",
        "annotation idpoverrides.hypershift.openshift.io/github",
    ]
