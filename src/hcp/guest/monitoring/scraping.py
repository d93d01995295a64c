"""Whom Prometheus asks, and what of the answers is kept. JSON, which is YAML too."""

from __future__ import annotations

import json
from typing import Any

from hcp.api.names import ROUTER_NAMESPACE
from hcp.controlplane.storage_plan import SNAPSHOT_CONTROLLER
from hcp.guest.monitoring import web
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE
from hcp.guest.objects import SYSTEM, GuestParams

INTERVAL = "30s"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
SNAPSHOT_PORT = "metrics"
_TOKEN = {"credentials_file": f"{ACCOUNT}/token"}
# Of containers: what rules, people and boards ask for. The rest is three quarters of all.
_CADVISOR = (
    "container_(cpu_usage_seconds_total|cpu_cfs_(throttled_)?periods_total|memory_(working_set_bytes|rss|usage_bytes)"
    "|network_(receive|transmit)_(bytes|errors|packets_dropped)_total|fs_(reads|writes)_bytes_total|oom_events_total"
    "|spec_memory_limit_bytes|start_time_seconds)|machine_(cpu_cores|memory_bytes)"
)
# Histograms of an API server are most of what it says. Kept is how long requests take, in few steps; those that are
# meant to be long are left out.
_API_KEPT = "apiserver_request_duration_seconds_bucket;(0\\.05|0\\.1|0\\.5|1|5|10|60|\\+Inf)(\\.0)?"
_API_LONG = "apiserver_request_duration_seconds_bucket;(WATCH|CONNECT)"
_HISTOGRAMS = ".+_bucket"

Job = dict[str, Any]


def text(g: GuestParams) -> str:
    return json.dumps(configuration(g), indent=1, sort_keys=True) + "\n"


def configuration(g: GuestParams) -> Job:
    return {
        "global": {
            "scrape_interval": INTERVAL,
            "evaluation_interval": INTERVAL,
            "external_labels": {"cluster": g.control_plane.name, "prometheus": f"{NAMESPACE}/k8s"},
        },
        "rule_files": ["rules.json"],
        "scrape_configs": jobs(g),
    }


def jobs(g: GuestParams) -> list[Job]:
    found = [
        _kubelet("kubelet", "/metrics"),
        {**_kubelet("kubelet-cadvisor", "/metrics/cadvisor"), "metric_relabel_configs": [_keep(_CADVISOR)]},
        _api_server(),
        _pods("coredns", SYSTEM, "k8s_app", "kube-dns", "metrics"),
        {**_ours("kube-state-metrics", "https-main"), "honor_labels": True},
        _ours("node-exporter", "https"),
        _itself(),
    ]
    if g.images.get(METRICS_IMAGE):
        found.append(_metrics_server())
    if g.ingress is not None:
        found.append(_pods("router", ROUTER_NAMESPACE, "", "", "health"))
    if snapshots(g):
        found.append(_pods("csi-snapshot-controller", SYSTEM, "k8s_app", "csi-snapshot-controller", SNAPSHOT_PORT))
    return found


def snapshots(g: GuestParams) -> bool:
    """Whether the part of storage that serves metrics runs in the guest; the rest of it is told by kubelets."""
    return bool(g.storage is not None and g.storage.plan.snapshot_classes and g.images.get(SNAPSHOT_CONTROLLER))


def _kubelet(name: str, path: str) -> Job:
    return {
        "job_name": name,
        "scheme": "https",
        "metrics_path": path,
        "authorization": _TOKEN,
        "tls_config": {"ca_file": "kubelet-ca.crt"},
        "kubernetes_sd_configs": [{"role": "node"}],
        "relabel_configs": [
            {"source_labels": ["__meta_kubernetes_node_name"], "target_label": "node"},
            {"source_labels": ["__metrics_path__"], "target_label": "metrics_path"},
            {"replacement": "kubelet", "target_label": "job"},
        ],
        "metric_relabel_configs": [_drop(_HISTOGRAMS)],
    }


def _api_server() -> Job:
    """By the name that pods have for it; the node's own proxy leads there."""
    host = "kubernetes.default.svc"
    return {
        "job_name": "apiserver",
        "scheme": "https",
        "authorization": _TOKEN,
        "tls_config": {"ca_file": f"{ACCOUNT}/ca.crt", "server_name": host},
        "static_configs": [{"targets": [f"{host}:443"]}],
        "metric_relabel_configs": [
            {
                "source_labels": ["__name__", "le"],
                "regex": _API_KEPT,
                "target_label": "__tmp_kept",
                "replacement": "yes",
            },
            {"source_labels": ["__tmp_kept", "__name__"], "regex": f";{_HISTOGRAMS}", "action": "drop"},
            {"source_labels": ["__name__", "verb"], "regex": _API_LONG, "action": "drop"},
            {"regex": "__tmp_kept", "action": "labeldrop"},
        ],
    }


def _pods(name: str, namespace: str, label: str, value: str, port: str) -> Job:
    """Pods with a label and a port of a name, in plain HTTP."""
    wanted = [{"source_labels": [f"__meta_kubernetes_pod_label_{label}"], "regex": value, "action": "keep"}]
    return {
        "job_name": name,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [namespace]}}],
        "relabel_configs": [
            *(wanted if label else []),
            {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": port, "action": "keep"},
            {"source_labels": ["__meta_kubernetes_pod_phase"], "regex": "Succeeded|Failed", "action": "drop"},
            {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
            {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
            {"source_labels": ["__meta_kubernetes_pod_node_name"], "target_label": "node"},
        ],
        "metric_relabel_configs": [_drop(_HISTOGRAMS)],
    }


def _ours(name: str, port: str) -> Job:
    """What stands beside Prometheus and answers only its certificate."""
    job = _pods(name, NAMESPACE, "app_kubernetes_io_name", name, port)
    return {**job, "scheme": "https", "tls_config": web.client(name), "metric_relabel_configs": []}


def _itself() -> Job:
    return {
        "job_name": "prometheus-k8s",
        "scheme": "https",
        "tls_config": web.client("prometheus-k8s"),
        "static_configs": [{"targets": ["localhost:9091"]}],
        "metric_relabel_configs": [_drop(_HISTOGRAMS)],
    }


def _metrics_server() -> Job:
    job = _pods("metrics-server", NAMESPACE, "app_kubernetes_io_name", "metrics-server", "https")
    tls = {"ca_file": web.AUTHORITY, "server_name": f"metrics-server.{NAMESPACE}.svc"}
    return {**job, "scheme": "https", "authorization": _TOKEN, "tls_config": tls}


def _keep(names: str) -> Job:
    return {"source_labels": ["__name__"], "regex": names, "action": "keep"}


def _drop(names: str) -> Job:
    return {"source_labels": ["__name__"], "regex": names, "action": "drop"}
