"""Which halves of monitoring a cluster has, and what its ClusterOperator says of them."""

from __future__ import annotations

from typing import Any

from hcp.guest.monitoring import serving
from hcp.guest.monitoring.plan import METRICS_IMAGE, NEEDED
from hcp.guest.platform.operators import Operator
from hcp.guest.state import GuestState, Part
from hcp.hostedcluster import cluster_operators, ignored_fields, monitoring
from hcp.hostedcluster.observed import Observed

ALL = dict.fromkeys((METRICS_IMAGE, *NEEDED), "r.test/one")


def names(spec: dict[str, Any], images: dict[str, str]) -> list[str]:
    return [one.name for one in monitoring.leaves(spec, images)]


def test_the_release_and_the_capability_decide() -> None:
    both = [monitoring.METRICS_LEAF, monitoring.PROMETHEUS_LEAF]
    off = {"capabilities": {"disabled": ["Monitoring"]}}
    assert names({}, {}) == []
    assert names({}, {METRICS_IMAGE: "r.test/one"}) == both[:1]
    assert names({}, ALL) == both
    assert names(off, ALL) == both[:1], "metrics-server is what autoscalers of pods need"
    assert names({}, {**ALL, NEEDED[0]: ""}) == both[:1]


def test_what_asks_and_what_is_asked_have_one_certificate() -> None:
    (_, leaf) = monitoring.leaves({}, ALL)
    assert leaf.leaf.usage == "both"
    assert "prometheus-k8s.openshift-monitoring.svc" in leaf.leaf.dns


def test_capabilities_that_no_part_serves_are_named() -> None:
    def asked(*enabled: str) -> list[str]:
        return ignored_fields.capabilities_not_in_release({"capabilities": {"enabled": list(enabled)}}, ALL)

    assert asked("Monitoring") == []
    assert asked("Ingress", "Console") == ["capabilities.enabled: Ingress", "capabilities.enabled: Console"]


def operator(api: str, *, some: bool = True) -> Operator:
    parts = tuple(
        Part(kind, name, some, some, some)
        for kind, name in (("Deployment", "metrics-server"), ("StatefulSet", "prometheus-k8s"))
    )
    seen = Observed(guest=GuestState(reachable=True, nodes=1, ready_nodes=1, parts=parts, metrics_api=api))
    (found,) = [one for one in cluster_operators.found({}, seen) if one.name == "monitoring"]
    return found


def test_metrics_that_nobody_can_ask_for_are_not_available() -> None:
    assert operator(serving.SERVED).works
    for how in ("", "no endpoints"):
        found = operator(how)
        assert not found.works and "v1beta1.metrics.k8s.io" in found.available[2]
    assert "no endpoints" in operator("no endpoints").available[2]
    assert not operator(serving.SERVED, some=False).works


def test_somebody_elses_server_of_metrics_is_told_and_nothing_wrong() -> None:
    found = operator(serving.FOREIGN)
    assert found.works and serving.FOREIGN in found.available[2]


def test_what_it_consists_of() -> None:
    assert operator(serving.SERVED).related == (
        ("apps", "deployments", "openshift-monitoring", "metrics-server"),
        ("apps", "statefulsets", "openshift-monitoring", "prometheus-k8s"),
    )
