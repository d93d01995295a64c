"""What measures inside a guest: which parts there are, who may ask them, and what they are asked."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from tests.support.unit.controlplane import IMAGES, params

from hcp.guest import manifests
from hcp.guest.monitoring import metrics_server, rules, scraping, serving
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE, NEEDED, GuestMonitoring, Pair
from hcp.guest.objects import LABELS, GuestParams

MEASURING = {**IMAGES, **{name: f"r.test/{name}@sha256:1" for name in (METRICS_IMAGE, *NEEDED)}}
PAIR = Pair(b"certificate", b"key")
BOTH = GuestMonitoring(b"kubelets", b"root", PAIR, PAIR)


def guest(monitoring: GuestMonitoring | None, **changes: Any) -> GuestParams:
    base: dict[str, Any] = {"images": MEASURING, "own_network": True, "highly_available": False}
    return GuestParams(params(), **(base | {"monitoring": monitoring} | changes))


def made(g: GuestParams) -> dict[tuple[str, str], dict[str, Any]]:
    """What is in the namespace of monitoring, and what it has elsewhere."""
    plain = {(m["kind"], m["metadata"]["name"]) for m in manifests.objects(guest(None))}
    found = {(m["kind"], m["metadata"]["name"]): m for m in manifests.objects(g)}
    return {key: value for key, value in found.items() if key not in plain}


def test_without_nodes_there_is_nothing_of_it() -> None:
    assert made(guest(None)) == {}


def test_each_half_stands_alone() -> None:
    workloads = ("DaemonSet", "Deployment", "StatefulSet")
    alone = {key for key in made(guest(GuestMonitoring(b"k", b"r", PAIR, None))) if key[0] in workloads}
    assert alone == {("Deployment", "metrics-server")}
    other = {key for key in made(guest(GuestMonitoring(b"k", b"r", None, PAIR))) if key[0] in workloads}
    assert other == {
        ("DaemonSet", "node-exporter"),
        ("Deployment", "kube-state-metrics"),
        ("StatefulSet", "prometheus-k8s"),
    }


@pytest.mark.parametrize(("high", "replicas"), [(False, 1), (True, 2)])
def test_pods_are_as_many_as_the_cluster_is_available(high: bool, replicas: int) -> None:
    found = made(guest(BOTH, highly_available=high))
    assert found[("Deployment", "metrics-server")]["spec"]["replicas"] == replicas
    assert found[("StatefulSet", "prometheus-k8s")]["spec"]["replicas"] == replicas
    assert found[("Deployment", "kube-state-metrics")]["spec"]["replicas"] == 1, "two would count everything twice"


def test_its_api_is_announced_when_it_is_served() -> None:
    key = ("APIService", metrics_server.API)
    assert key not in made(guest(BOTH))
    spec = made(guest(GuestMonitoring(b"k", b"root", PAIR, None, announced=True)))[key]["spec"]
    assert spec["service"] == {"name": "metrics-server", "namespace": NAMESPACE, "port": 443}
    assert base64.b64decode(spec["caBundle"]) == b"root"
    assert "insecureSkipTLSVerify" not in spec


def test_kubelets_are_believed_by_the_authority_that_signs_them() -> None:
    found = made(guest(BOTH))
    words = found[("Deployment", "metrics-server")]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert not [word for word in words if "insecure" in word]
    assert found[("ConfigMap", metrics_server.AUTHORITY)]["data"]["ca.crt"] == "kubelets"
    other = made(guest(GuestMonitoring(b"others", b"root", PAIR, PAIR)))
    key = ("Deployment", "metrics-server")
    assert found[key]["spec"]["template"]["metadata"] != other[key]["spec"]["template"]["metadata"], "read at the start"
    key = ("StatefulSet", "prometheus-k8s")
    assert found[key] == other[key], "Prometheus reads it again, and keeps its history"


def test_nothing_tells_metrics_to_whoever_asks() -> None:
    """Of those that have no authentication of their own, each asks for a certificate."""
    found = made(guest(BOTH))
    settings = json.loads(found[("ConfigMap", "monitoring-web")]["data"]["web.json"])["tls_server_config"]
    assert settings["client_auth_type"] == "RequireAndVerifyClientCert"
    for kind, name in (
        ("DaemonSet", "node-exporter"),
        ("Deployment", "kube-state-metrics"),
        ("StatefulSet", "prometheus-k8s"),
    ):
        (container,) = found[(kind, name)]["spec"]["template"]["spec"]["containers"]
        assert [word for word in container["command"] if word.endswith("/etc/monitoring/web/web.json")], name
        assert "httpGet" not in container["readinessProbe"], "a kubelet has no certificate to show"


def test_nobody_reads_secrets() -> None:
    roles = [m for key, m in made(guest(BOTH)).items() if key[0] == "ClusterRole"]
    granted = {resource for role in roles for rule in role["rules"] for resource in rule.get("resources", ())}
    assert roles and not granted & {"secrets", "configmaps", "*"}


def test_pods_may_do_little() -> None:
    for (kind, name), manifest in made(guest(BOTH)).items():
        if kind not in ("DaemonSet", "Deployment", "StatefulSet"):
            continue
        pod = manifest["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert bool(pod.get("hostNetwork")) == (name == "node-exporter")
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["readOnlyRootFilesystem"]


def test_who_is_asked_follows_from_what_there_is() -> None:
    plain = {job["job_name"] for job in scraping.jobs(guest(BOTH, images={**IMAGES}))}
    assert {"kubelet", "kubelet-cadvisor", "apiserver", "coredns", "kube-state-metrics", "node-exporter"} <= plain
    assert not plain & {"router", "metrics-server", "csi-snapshot-controller"}
    from hcp.guest.ingress_plan import GuestIngress

    more = guest(BOTH, ingress=GuestIngress("apps.test", "r.test/router", b"c", b"k"))
    assert {"router", "metrics-server"} <= {job["job_name"] for job in scraping.jobs(more)}


def test_of_an_api_server_only_few_histograms_are_kept() -> None:
    (job,) = [one for one in scraping.jobs(guest(BOTH)) if one["job_name"] == "apiserver"]
    kept = re.compile(job["metric_relabel_configs"][0]["regex"])
    assert kept.fullmatch("apiserver_request_duration_seconds_bucket;0.1")
    assert kept.fullmatch("apiserver_request_duration_seconds_bucket;1.0")
    assert kept.fullmatch("apiserver_request_duration_seconds_bucket;+Inf")
    assert not kept.fullmatch("apiserver_request_duration_seconds_bucket;0.005")
    assert not kept.fullmatch("apiserver_response_sizes_bucket;+Inf")


def test_every_alert_says_what_to_do_and_has_a_name_of_its_own() -> None:
    alerts = [one for group in rules.ALERTS.values() for one in group]
    assert len({one.name for one in alerts}) == len(alerts)
    for one in alerts:
        assert one.severity in ("none", "info", "warning", "critical")
        assert one.summary and len(one.description) > 20, one.name
        assert one.expr.count("(") == one.expr.count(")"), one.name
    assert {group["name"] for group in json.loads(rules.text())["groups"]} == {
        *(f"hcp-{name}" for name in rules.ALERTS),
        "hcp-records",
    }


def server(available: int) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "metrics-server"}, "status": {"availableReplicas": available}}


def api(status: str = "True", **labels: str) -> dict[str, Any]:
    conditions = [{"type": "Available", "status": status, "message": "no answer"}]
    return {"metadata": {"name": metrics_server.API, "labels": labels}, "status": {"conditions": conditions}}


def test_an_api_is_announced_from_the_first_answer_to_the_last_node() -> None:
    assert not serving.announce([server(0)], [], nodes=1, before=False)
    assert serving.announce([server(1)], [], nodes=1, before=False)
    assert serving.announce([server(0)], [api(**LABELS)], nodes=1, before=True), "a pod that is replaced comes back"
    assert not serving.announce([server(1)], [api(**LABELS)], nodes=0, before=True)
    assert not serving.announce([server(1)], [api()], nodes=1, before=False), "somebody has a server of their own"


def test_how_the_api_is() -> None:
    assert serving.told([]) == ""
    assert serving.told([api(**LABELS)]) == serving.SERVED
    assert serving.told([api("False", **LABELS)]) == "no answer"
    assert serving.told([api()]) == serving.FOREIGN
