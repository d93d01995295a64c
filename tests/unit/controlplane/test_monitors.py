"""What a Prometheus operator is told of a control plane."""

from __future__ import annotations

import re

import pytest
from tests.support.unit.controlplane import params

from hcp.api.capabilities import METRICS_SETS
from hcp.controlplane import etcd, monitors, oauth
from hcp.controlplane.params import LOGIN_IMAGE


def kept(metrics_set: str, component: str) -> re.Pattern[str] | None:
    found = {one["metadata"]["name"]: one for one in monitors.pod_monitors(params(), metrics_set)}
    (endpoint,) = found[component]["spec"]["podMetricsEndpoints"]
    rules = endpoint.get("metricRelabelings")
    return re.compile(rules[0]["regex"]) if rules else None


def test_each_set_is_known_and_larger_than_the_one_before() -> None:
    assert set(monitors.SETS) == set(METRICS_SETS)
    assert set(monitors.SETS["Telemetry"]) < set(monitors.SETS["SRE"])
    few, more = kept("Telemetry", "kube-apiserver"), kept("SRE", "kube-apiserver")
    assert few and few.fullmatch("apiserver_request_total")
    assert not few.fullmatch("apiserver_request_duration_seconds_bucket")
    assert more and more.fullmatch("apiserver_request_duration_seconds_bucket")


@pytest.mark.parametrize("name", ["", "All"])
def test_without_a_set_all_is_kept(name: str) -> None:
    assert kept(name, "etcd") is None


def test_who_may_read_metrics_may_read_nothing_else() -> None:
    leaf = monitors.leaf().leaf
    assert (leaf.orgs, leaf.usage) == (("system:monitoring",), "client")


def test_an_etcd_of_somebody_elses_is_not_ours_to_watch() -> None:
    names = {one["metadata"]["name"] for one in monitors.pod_monitors(params(foreign_etcd="https://e:2379"), "")}
    assert names == {"kube-apiserver", "kube-controller-manager", "kube-scheduler"}


def test_the_oauth_server_is_asked_on_the_port_it_measures_on_and_every_set_keeps_the_attempts() -> None:
    for name in ("", *METRICS_SETS):
        spec = monitors.of_login(params(), name)["spec"]
        (endpoint,) = spec["podMetricsEndpoints"]
        pod = oauth.deployment(params(images={LOGIN_IMAGE: "r/dex"}), "hash")["spec"]["template"]
        ports = {one["name"]: one["containerPort"] for one in pod["spec"]["containers"][0]["ports"]}
        assert (ports[endpoint["port"]], endpoint["scheme"]) == (oauth.METRICS_PORT, "http")
        assert spec["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        for rule in endpoint.get("metricRelabelings", ()):
            assert re.fullmatch(rule["regex"], "hcp_login_attempts_total")


def test_without_a_prometheus_operator_an_annotation_tells_where_etcd_serves_them() -> None:
    front = next(one for one in etcd.services(params()) if one["metadata"]["name"] == etcd.CLIENT)
    assert front["metadata"]["annotations"]["prometheus.io/port"] == str(etcd.METRICS_PORT)
