from __future__ import annotations

import datetime as dt

import pytest
from tests.support.unit.hostedcluster import cluster

from hcp.api import names, pause
from hcp.guest.own_network import own_network
from hcp.hostedcluster import defaults, ignored_fields, translate, version

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_defaults_are_filled_in_once() -> None:
    made = cluster()
    body = defaults.patch_for(made)
    assert body is not None
    assert set(body["spec"]) == {"clusterID", "infraID", "secretEncryption"}
    assert body["metadata"]["finalizers"] == [names.FINALIZER]
    assert body["metadata"]["resourceVersion"] == "5"
    made["spec"] |= body["spec"]
    made["metadata"]["finalizers"] = body["metadata"]["finalizers"]
    assert defaults.patch_for(made) is None


def test_a_missing_generate_id_is_filled_in_beside_the_rest() -> None:
    made = cluster(platform={"type": "KubeVirt", "kubevirt": {"baseDomainPassthrough": True}})
    assert len(defaults.missing(made)["platform"]["kubevirt"]["generateID"]) == 10
    assert "platform" not in defaults.missing(cluster(platform={"type": "None"}))


def test_the_base_domain_is_the_apps_domain_where_routes_are_passed_through() -> None:
    through = cluster(platform={"type": "KubeVirt", "kubevirt": {"generateID": "x", "baseDomainPassthrough": True}})
    assert defaults.missing(through, "apps.example")["dns"] == {"baseDomain": "apps.example"}
    assert "dns" not in defaults.missing(through)
    assert "dns" not in defaults.missing(cluster(), "apps.example")
    given = {**through, "spec": {**through["spec"], "dns": {"baseDomain": "mine.example"}}}
    assert "dns" not in defaults.missing(given, "apps.example")


@pytest.mark.parametrize(
    ("text", "paused", "problem"),
    [
        (None, False, False),
        ("true", True, False),
        ("False", False, False),
        ("2026-06-01T00:00:00Z", True, False),
        ("2025-06-01T00:00:00Z", False, False),
        ("soon", False, True),
    ],
)
def test_pause(text: str | None, paused: bool, problem: bool) -> None:
    found = pause.parse(text, NOW)
    assert (found.paused, bool(found.problem)) == (paused, problem)


def test_a_dated_pause_knows_its_end() -> None:
    assert pause.parse("2026-01-01T00:00:30Z", NOW).seconds(NOW) == 30
    assert pause.parse("true", NOW).seconds(NOW) is None


def test_history_moves_on_with_the_release() -> None:
    common = {"generation": 1, "now": "t1"}
    first = version.advance(None, image="a", version="1", complete=False, **common)  # type: ignore[arg-type]
    assert first["history"][0]["state"] == "Partial"
    done = version.advance(first, image="a", version="1", complete=True, generation=1, now="t2")
    assert done["history"][0]["completionTime"] == "t2"
    assert version.advance(done, image="a", version="1", complete=True, generation=1, now="t3") == done
    # What was complete stays so, even while a part is down.
    assert version.advance(done, image="a", version="1", complete=False, generation=1, now="t4") == done
    upgraded = version.advance(done, image="b", version="2", complete=False, generation=2, now="t5")
    assert [h["version"] for h in upgraded["history"]] == ["2", "1"]
    assert version.completed_version(upgraded) == "1"


def test_an_abandoned_upgrade_gets_an_end() -> None:
    first = version.advance(None, image="a", version="1", complete=False, generation=1, now="t1")
    second = version.advance(first, image="b", version="2", complete=False, generation=1, now="t2")
    assert second["history"][1]["completionTime"] == "t2"


def test_params_of_a_usual_cluster() -> None:
    p = translate.params(cluster(), apps_domain="apps.example")
    assert p.namespace == "clusters-demo"
    assert p.publishing["Konnectivity"].hostname == "konnectivity-server-clusters-demo.apps.example"
    assert p.publishing["APIServer"].type == "LoadBalancer"
    assert p.allocate_node_cidrs
    assert not p.highly_available
    assert p.dns_ips() == ("172.31.0.10",)


def test_other_networks_decide_about_node_ranges_themselves() -> None:
    other = cluster(networking={"networkType": "Other", "clusterNetwork": [{"cidr": "10.0.0.0/16"}]})
    assert not own_network(other["spec"])
    assert not translate.params(other).allocate_node_cidrs


@pytest.mark.parametrize(
    ("cidr", "prefix"),
    [
        *(("10.132.0.0/14", 23), ("10.0.0.0/24", 26)),
        *(("fd01::/48", 64), ("fd01::/32", 48), ("fd01::/64", 72), ("fd01::/124", 128)),
    ],
)
def test_host_prefix_fits_the_network(cidr: str, prefix: int) -> None:
    assert translate.host_prefixes({"networking": {"clusterNetwork": [{"cidr": cidr}]}}) == (prefix,)


def test_each_network_has_its_own_host_prefix() -> None:
    networks = [{"cidr": "10.132.0.0/14"}, {"cidr": "fd01::/48", "hostPrefix": 60}]
    assert translate.host_prefixes({"networking": {"clusterNetwork": networks}}) == (23, 60)
    assert translate.host_prefixes({}) == (23,)


def test_labels_that_policies_select_by_do_not_reach_pods() -> None:
    reach = f"{names.GROUP}/need-management-kas-access"
    asked = {"team": "a", "olm.catalogSource": "x", "kubevirt.io": "virt-launcher", reach: "true"}
    made = cluster(labels=asked)
    assert translate.params(made).labels == {"team": "a"}
    told = ignored_fields.not_acted_on(made["spec"])
    assert [one for one in told if one.startswith("labels")] == [f"labels[{key}]" for key in list(asked)[1:]]
