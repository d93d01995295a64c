"""How a Prometheus operator of the management cluster finds the metrics of a control plane, and may read them.

Where its kinds are not served nothing of this exists. The client certificate belongs to the group that Kubernetes lets
read metrics and nothing else.
"""

from __future__ import annotations

from typing import Any

from hcp.controlplane import controller_manager, etcd, oauth, scheduler
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.meta import component_labels, obj
from hcp.controlplane.params import Manifest, Params
from hcp.pki import Leaf

CLIENT = "metrics-client"
INTERVAL = "30s"
API = "kube-apiserver"
# Component → its port, and the name its certificate has; none: plain HTTP, which only probes and monitoring reach.
TARGETS = {
    API: ("client", "kubernetes"),
    etcd.COMPONENT: ("metrics", ""),
    controller_manager.COMPONENT: ("client", controller_manager.COMPONENT),
    scheduler.COMPONENT: ("client", scheduler.COMPONENT),
}
# What is kept of each by `monitoring.metricsSet`: whether it works, and what shows why it does not. All keeps all.
_TELEMETRY = (
    "apiserver_(request_total|storage_objects|current_inflight_requests)",
    "hcp_login_attempts_total",
    "etcd_(server_has_leader|server_leader_changes_seen_total|mvcc_db_total_size_in_bytes|server_quota_backend_bytes)",
    "process_(cpu_seconds_total|resident_memory_bytes|start_time_seconds)",
    "scheduler_(pending_pods|schedule_attempts_total)",
    "workqueue_depth",
)
_SRE = (
    *_TELEMETRY,
    "apiserver_(request_duration_seconds_(bucket|count|sum)|admission_webhook_.+_(count|sum)|audit_.+_total)",
    "apiserver_flowcontrol_(rejected_requests_total|current_inqueue_requests)",
    "aggregator_unavailable_apiservice(_total)?",
    "etcd_(disk_.+_duration_seconds_(bucket|count|sum)|mvcc_db_total_size_in_use_in_bytes|server_proposals_.+)",
    "etcd_network_peer_.+",
    "(node_collector|pv_collector|endpoint_slice_controller)_.+",
    "rest_client_requests_total",
    "scheduler_(scheduling_attempt_duration_seconds|pod_scheduling_sli_duration_seconds)_(bucket|count|sum)",
    "workqueue_(adds_total|retries_total|queue_duration_seconds_(count|sum))",
)
SETS = {"Telemetry": _TELEMETRY, "SRE": _SRE, "All": ()}


def leaf() -> LeafSecret:
    return LeafSecret(
        CLIENT, "kube-control-plane-signer", Leaf("system:hosted-metrics", ("system:monitoring",), usage="client")
    )


def pod_monitors(p: Params, metrics_set: str) -> list[Manifest]:
    found = {name: target for name, target in TARGETS.items() if name != etcd.COMPONENT or not p.foreign_etcd}
    return [_pod_monitor(p, name, *target, SETS.get(metrics_set) or ()) for name, target in found.items()]


def of_login(p: Params, metrics_set: str) -> Manifest:
    """Of the OAuth server, which not every cluster has: how often people were let in, and how often not."""
    return _pod_monitor(p, oauth.COMPONENT, "metrics", "", SETS.get(metrics_set) or ())


def _pod_monitor(p: Params, component: str, port: str, host: str, kept: tuple[str, ...]) -> Manifest:
    labels = component_labels(p, component)
    endpoint: dict[str, Any] = {
        "port": port,
        "path": "/metrics",
        "interval": INTERVAL,
        "scheme": "https" if host else "http",
        "relabelings": [
            # As HyperShift has it: which hosted cluster.
            {"targetLabel": "_id", "replacement": p.cluster_id or p.infra_id},
            {"targetLabel": "hosted_cluster", "replacement": f"{p.cluster_namespace}/{p.name}"},
            {"targetLabel": "job", "replacement": component},
        ],
    }
    if host:
        endpoint["tlsConfig"] = {
            "serverName": host,
            "ca": {"configMap": {"name": "root-ca", "key": "ca.crt"}},
            "cert": {"secret": {"name": CLIENT, "key": "tls.crt"}},
            "keySecret": {"name": CLIENT, "key": "tls.key"},
        }
    if kept:
        keep = {"action": "keep", "sourceLabels": ["__name__"], "regex": "|".join(kept)}
        endpoint["metricRelabelings"] = [keep]
    spec = {"selector": {"matchLabels": labels}, "podMetricsEndpoints": [endpoint]}
    return obj(p, "monitoring.coreos.com/v1", "PodMonitor", component, {"spec": spec}, labels=labels)
