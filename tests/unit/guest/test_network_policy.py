"""Who enforces NetworkPolicies inside a guest, and when."""

from __future__ import annotations

import json
from typing import Any

from tests.support.unit.controlplane import IMAGES, params

from hcp.guest import manifests, network_policy
from hcp.guest.objects import GuestParams, Manifest
from hcp.guest.policy_stage import Stage

WITH = {**IMAGES, "kube-router": "registry.example/kube-router@sha256:0"}


def guest(stage: Stage, control_plane: dict[str, Any] | None = None, **changes: Any) -> GuestParams:
    base: dict[str, Any] = {"images": WITH, "own_network": True, "highly_available": False, "policies": stage}
    return GuestParams(params(**(control_plane or {})), **(base | changes))


def daemon_set(g: GuestParams) -> Manifest:
    (found,) = [o for o in network_policy.objects(g) if o["kind"] == "DaemonSet"]
    return found


def command(g: GuestParams) -> list[str]:
    words: list[str] = daemon_set(g)["spec"]["template"]["spec"]["containers"][0]["command"]
    return words


def test_a_cluster_without_policies_has_nothing_of_it() -> None:
    text = json.dumps(manifests.objects(guest(Stage.OFF)))
    assert "kube-router" not in text and network_policy.ROLE not in text


def test_only_the_firewall_runs_and_it_knows_the_clusters_networks() -> None:
    words = command(guest(Stage.ENFORCING))
    assert {"--run-firewall=true", "--run-router=false", "--run-service-proxy=false"} <= set(words)
    assert {"--enable-ipv4=true", "--enable-ipv6=false", "--service-cluster-ip-range=172.31.0.0/16"} <= set(words)


def test_both_families_where_pods_have_both() -> None:
    networks = {"cluster_networks": ("10.132.0.0/14", "fd01::/48"), "service_networks": ("172.31.0.0/16", "fd02::/112")}
    words = command(guest(Stage.ENFORCING, networks))
    assert {"--enable-ipv4=true", "--enable-ipv6=true", "--service-cluster-ip-range=fd02::/112"} <= set(words)


def test_it_may_read_and_nothing_else() -> None:
    (role,) = [o for o in network_policy.objects(guest(Stage.ENFORCING)) if o["kind"] == "ClusterRole"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert "secrets" not in json.dumps(role)


def test_it_asks_the_api_where_no_service_is_needed_to_find_it() -> None:
    env = daemon_set(guest(Stage.ENFORCING))["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "KUBERNETES_SERVICE_HOST", "value": "172.20.0.1"} in env


def test_no_pod_of_it_is_privileged() -> None:
    for stage in (Stage.ENFORCING, Stage.ENDING):
        assert '"privileged": true' not in json.dumps(daemon_set(guest(stage)))


def test_another_network_brings_its_own_enforcement() -> None:
    assert network_policy.objects(guest(Stage.ENFORCING, own_network=False)) == []


def test_a_release_without_it_enforces_nothing() -> None:
    assert not network_policy.possible(guest(Stage.ENFORCING, images=IMAGES))
    assert network_policy.objects(guest(Stage.ENFORCING, images=IMAGES)) == []


def test_the_end_takes_the_rules_away_before_its_pods_are_ready() -> None:
    made = daemon_set(guest(Stage.ENDING))
    assert network_policy.is_ending(made) and not network_policy.is_ending(daemon_set(guest(Stage.ENFORCING)))
    spec = made["spec"]["template"]["spec"]
    assert "KUBE-ROUTER" in spec["initContainers"][0]["command"][-1]
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["command"][0] == "sleep"
    # Nothing is enforced any more: all nodes at once.
    assert made["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "100%"
