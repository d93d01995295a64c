"""What absent fields mean."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.api import defaults

UUID = "01234567-89ab-cdef-0123-456789abcdef"


def test_advertise_address_follows_the_ip_family_and_the_user() -> None:
    assert defaults.advertise_address({}) == "172.20.0.1"
    assert defaults.advertise_address({"networking": {"serviceNetwork": [{"cidr": "fd02::/112"}]}}) == "fd00::1"
    assert defaults.advertise_address({"networking": {"apiServer": {"advertiseAddress": "10.9.9.9"}}}) == "10.9.9.9"


def test_port() -> None:
    assert defaults.api_port({}) == 6443
    assert defaults.api_port({"networking": {"apiServer": {"port": 7443}}}) == 7443


def test_missing_services_are_added_and_given_ones_kept() -> None:
    given = {"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "a.b"}}}
    found = defaults.services({"services": [given]})
    assert found[0] == given
    assert [entry["service"] for entry in found] == ["APIServer", "Ignition", "Konnectivity", "OAuthServer"]
    assert defaults.publishing({"services": [given]}, "APIServer")["type"] == "Route"
    assert defaults.publishing({}, "APIServer") == {"type": "LoadBalancer"}
    assert defaults.publishing({}, "OIDC") == {"type": "None"}


def test_a_cluster_is_completed_once() -> None:
    bare: dict[str, Any] = {"metadata": {"name": "demo"}, "spec": {"platform": {"type": "KubeVirt"}}}
    first = defaults.hosted_cluster(bare, cluster_id=UUID)
    assert first["spec"]["clusterID"] == UUID
    assert first["spec"]["infraID"].startswith("demo-")
    assert len(first["spec"]["platform"]["kubevirt"]["generateID"]) == 10
    assert first["spec"]["platform"]["kubevirt"]["baseDomainPassthrough"] is True
    assert defaults.hosted_cluster(first, cluster_id="other") == first
    assert "infraID" not in bare["spec"]


def test_a_base_domain_switches_passthrough_off() -> None:
    bare = {"metadata": {"name": "d"}, "spec": {"platform": {"type": "KubeVirt"}, "dns": {"baseDomain": "a.b"}}}
    made = defaults.hosted_cluster(bare, cluster_id=UUID)
    assert "baseDomainPassthrough" not in made["spec"]["platform"]["kubevirt"]


def test_pool_release_falls_back_to_the_cluster() -> None:
    cluster = {"release": {"image": "c"}}
    assert defaults.pool_release({}, cluster) == "c"
    assert defaults.pool_release({"release": {"image": ""}}, cluster) == "c"
    assert defaults.pool_release({"release": {"image": "p"}}, cluster) == "p"


def test_pool_blocks() -> None:
    virt = defaults.pool_kubevirt({"platform": {"kubevirt": {"hostDevices": [{"deviceName": "g"}]}}})
    assert virt["compute"] == {"memory": "8Gi", "cores": 2, "qosClass": "Burstable"}
    assert virt["hostDevices"][0]["count"] == 1
    assert virt["attachDefaultNetwork"] is True
    management = defaults.pool_management({"management": {"upgradeType": ""}})
    assert management["upgradeType"] == "Replace"
    assert management["replace"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, False),
        ("", False),
        ("false", False),
        ("True", True),
        ("2030-01-01T00:00:00Z", True),
        ("2020-01-01T00:00:00Z", False),
        ("2025-06-01T00:00:01+02:00", False),
    ],
)
def test_paused(value: str | None, expected: bool) -> None:
    assert defaults.paused(value, "2025-06-01T00:00:00Z") == (expected, None)


@pytest.mark.parametrize("value", ["soon", "2030-01-01", "2030-01-01T00:00:00"])
def test_unreadable_pause_says_so(value: str) -> None:
    held, problem = defaults.paused(value, "2025-06-01T00:00:00Z")
    assert not held
    assert problem is not None
    assert value in problem
