"""MetalLB as an add-on: what is changed in its project's manifest, its addresses, and who stands aside for it."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hcp.local.addons import metallb
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL
from hcp.local.lifecycle.report import summary
from hcp.local.lifecycle.up import Outcome
from hcp.local.network.addresses import MAX_CLUSTERS, Addresses
from hcp.local.network.firewall import node_rules
from hcp.local.node import processes
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import first
from hcp.local.state.spec import METALLB, Spec
from hcp.payload.registry import default_registry

IMAGES = {"metallb-controller": "r.test/c@sha256:1", "metallb-speaker": "r.test/s@sha256:2"}
PLAIN = Spec("t", "cluster", 5)
WITH = PLAIN.with_extras([METALLB])


def workload(kind: str, name: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/metrics", "port": "monitoring"}, "initialDelaySeconds": 10, "periodSeconds": 10}
    container = {"name": name, "image": "upstream", "livenessProbe": dict(probe), "readinessProbe": dict(probe)}
    pod = {"containers": [container], "nodeSelector": {"kubernetes.io/os": "linux"}}
    labels = {"app": "metallb", "component": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": metallb.NAMESPACE, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


HOOKS = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hooks", "creationTimestamp": None},
}
MANIFEST = yaml.safe_dump_all([HOOKS, workload("Deployment", "controller"), workload("DaemonSet", "speaker")])


def test_the_manifest_names_our_images_and_the_node_on_the_wire() -> None:
    hooks, controller, speaker = metallb.objects(MANIFEST, IMAGES, "1.2.3")
    assert hooks["metadata"] == {"name": "hooks"}
    for obj, image in ((controller, "r.test/c@sha256:1"), (speaker, "r.test/s@sha256:2")):
        pod = obj["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == image
        assert pod["containers"][0]["readinessProbe"]["periodSeconds"] == 1
        assert (CONTROL_PLANE_LABEL in pod["nodeSelector"]) == (obj is speaker)
        assert obj["metadata"]["labels"]["app.kubernetes.io/version"] == "1.2.3"
        assert "app.kubernetes.io/version" not in obj["spec"]["template"]["metadata"]["labels"]


@given(st.integers(0, MAX_CLUSTERS - 1))
def test_addresses_for_pools_are_led_by_nobody(number: int) -> None:
    """A route or an address of the node there would answer in the speaker's place."""
    plan = Addresses(number)
    announced, link = ipaddress.ip_network(plan.announced), ipaddress.IPv4Network(plan.link_range)
    begin, end = map(ipaddress.IPv4Address, plan.pool_range.split("-"))
    assert begin == announced[0] and end == announced[-2] and announced[-1] == link.broadcast_address
    assert ipaddress.IPv4Network(plan.announced).subnet_of(link)
    assert not announced.overlaps(ipaddress.ip_network(plan.load_balancers))
    assert not announced.overlaps(ipaddress.ip_network(plan.joined_nodes))
    assert not {ipaddress.ip_address(text) for text in (plan.host, plan.node, plan.registry)} & set(announced)


def test_what_had_an_address_keeps_it_and_nothing_new_is_given_unasked() -> None:
    plan = Addresses(3)
    spec = metallb.pool(plan)["spec"]
    assert spec == {"addresses": [plan.load_balancers], "autoAssign": False}
    assert ipaddress.ip_address(plan.router) in ipaddress.ip_network(spec["addresses"][0])


def test_our_own_giver_of_addresses_stands_aside(tmp_path: Path) -> None:
    binaries = {name: Path("/bin") / name for name in ("containerd", "kubelet", "kube-proxy", "registry")}

    def names(spec: Spec) -> set[str]:
        return {one.name for one in processes.processes(first(spec), Layout(tmp_path), binaries, {})}

    assert names(PLAIN) - names(WITH) == {processes.BALANCER} and names(WITH) < names(PLAIN)


def test_a_closed_port_of_an_announced_address_is_refused() -> None:
    assert f'oifname "eth0" ip daddr {Addresses(4).announced} reject' in node_rules(Addresses(4))


def test_up_says_which_addresses_pools_can_have(tmp_path: Path) -> None:
    assert "10.88.5.128-10.88.5.254" in summary(Outcome(WITH, Layout(tmp_path), True, {}))
    assert "pool" not in summary(Outcome(PLAIN, Layout(tmp_path), True, {}))


@pytest.mark.parametrize("name", ["metallb", *metallb.IMAGES, metallb.MANIFESTS])
def test_it_is_made_on_request_only(name: str) -> None:
    assert name not in default_registry().usual()
