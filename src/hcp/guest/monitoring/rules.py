"""What is wrong with a cluster, as a tenant sees it. Control planes are looked after by whoever runs them.

Names are those that people know from other clusters where the meaning is the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Alert:
    name: str
    expr: str
    lasting: str
    severity: str
    summary: str
    description: str


_ROOM = 'node_filesystem_avail_bytes{fstype!=""} / node_filesystem_size_bytes{fstype!=""}'
_VOLUME = "kubelet_volume_stats_available_bytes / kubelet_volume_stats_capacity_bytes"
_READY = 'kube_node_status_condition{condition="Ready",status="true"}'

ALERTS: dict[str, tuple[Alert, ...]] = {
    "general": (
        Alert(
            "Watchdog",
            "vector(1)",
            "0s",
            "none",
            "Alerts are computed",
            "This one is always there: if it is not, nothing is watched.",
        ),
        Alert(
            "TargetDown",
            "100 * (count by (job, namespace) (up == 0) / count by (job, namespace) (up)) > 10",
            "15m",
            "warning",
            "{{ $labels.job }} does not answer",
            '{{ printf "%.0f" $value }} % of {{ $labels.job }} cannot be asked for metrics.',
        ),
    ),
    "nodes": (
        Alert(
            "KubeNodeNotReady",
            f"{_READY} == 0",
            "15m",
            "warning",
            "Node {{ $labels.node }} is not ready",
            "Its pods do not run, or are moved. kubectl describe node {{ $labels.node }}",
        ),
        Alert(
            "KubeNodePressure",
            'kube_node_status_condition{condition=~"(Memory|Disk|PID)Pressure",status="true"} == 1',
            "10m",
            "info",
            "Node {{ $labels.node }} is under {{ $labels.condition }}",
            "The kubelet evicts pods until there is room again.",
        ),
        Alert(
            "KubeletDown",
            f'{_READY} unless on (node) (up{{job="kubelet",metrics_path="/metrics"}} == 1)',
            "15m",
            "critical",
            "The kubelet of {{ $labels.node }} cannot be asked",
            "Logs, metrics and commands in its pods do not work either.",
        ),
        Alert(
            "NodeFilesystemAlmostOutOfSpace",
            f"{_ROOM} < 0.05 and node_filesystem_readonly == 0",
            "30m",
            "critical",
            "The disk of {{ $labels.node }} is full",
            "Less than 5 % of {{ $labels.mountpoint }} is free. Images and logs of pods fill it; a larger root volume "
            "of the node pool gives more room.",
        ),
        Alert(
            "NodeFilesystemSpaceFillingUp",
            f"{_ROOM} < 0.2 and predict_linear(node_filesystem_avail_bytes[6h], 24 * 3600) < 0 "
            "and node_filesystem_readonly == 0",
            "1h",
            "warning",
            "The disk of {{ $labels.node }} will be full within a day",
            "{{ $labels.mountpoint }} fills at the pace of the last six hours.",
        ),
        Alert(
            "NodeMemoryHighUtilization",
            "node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes < 0.1",
            "15m",
            "warning",
            "Node {{ $labels.node }} has less than a tenth of its memory left",
            "Give the pods of this node limits, or the node pool larger machines.",
        ),
        Alert(
            "NodeClockSkewDetected",
            "abs(node_time_seconds - timestamp(node_time_seconds)) > 60",
            "10m",
            "warning",
            "The clock of {{ $labels.node }} is wrong by more than a minute",
            "Certificates and tokens will be refused.",
        ),
    ),
    "workloads": (
        Alert(
            "KubePodCrashLooping",
            'max_over_time(kube_pod_container_status_waiting_reason{reason="CrashLoopBackOff"}[5m]) >= 1',
            "15m",
            "warning",
            "Pod {{ $labels.namespace }}/{{ $labels.pod }} keeps ending",
            "Container {{ $labels.container }}: kubectl logs --previous says its last words.",
        ),
        Alert(
            "KubePodNotReady",
            'sum by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Unknown|Failed"}) '
            '* on (namespace, pod) group_left () max by (namespace, pod) (kube_pod_owner{owner_kind!="Job"}) > 0',
            "15m",
            "warning",
            "Pod {{ $labels.namespace }}/{{ $labels.pod }} does not get to run",
            "kubectl describe pod says what it waits for: an image, a volume, or room on a node.",
        ),
        Alert(
            "KubeContainerOOMKilled",
            "sum by (namespace, pod, container) (increase(kube_pod_container_status_restarts_total[15m])) > 0 and on "
            '(namespace, pod, container) kube_pod_container_status_last_terminated_reason{reason="OOMKilled"} == 1',
            "0s",
            "warning",
            "Container {{ $labels.container }} of {{ $labels.namespace }}/{{ $labels.pod }} had too little memory",
            "It was ended and started again. Raise its limit, or find what it holds.",
        ),
        Alert(
            "KubeDeploymentReplicasMismatch",
            "kube_deployment_spec_replicas > kube_deployment_status_replicas_available and "
            "changes(kube_deployment_status_replicas_updated[10m]) == 0",
            "15m",
            "warning",
            "Deployment {{ $labels.namespace }}/{{ $labels.deployment }} lacks pods",
            "Fewer are available than are wanted, for 15 minutes.",
        ),
        Alert(
            "KubeStatefulSetReplicasMismatch",
            "kube_statefulset_replicas > kube_statefulset_status_replicas_ready",
            "15m",
            "warning",
            "StatefulSet {{ $labels.namespace }}/{{ $labels.statefulset }} lacks pods",
            "Fewer are ready than are wanted, for 15 minutes.",
        ),
        Alert(
            "KubeDaemonSetMisScheduled",
            "kube_daemonset_status_desired_number_scheduled > kube_daemonset_status_number_available",
            "30m",
            "warning",
            "DaemonSet {{ $labels.namespace }}/{{ $labels.daemonset }} is not on every node",
            "Some of its pods are not available, for half an hour.",
        ),
        Alert(
            "KubeJobFailed",
            "kube_job_failed > 0",
            "15m",
            "warning",
            "Job {{ $labels.namespace }}/{{ $labels.job_name }} failed",
            "Delete it after a look at its pods, and this goes away.",
        ),
        Alert(
            "KubeHpaMaxedOut",
            "kube_horizontalpodautoscaler_status_current_replicas == kube_horizontalpodautoscaler_spec_max_replicas "
            "and kube_horizontalpodautoscaler_spec_max_replicas > kube_horizontalpodautoscaler_spec_min_replicas",
            "15m",
            "warning",
            "HorizontalPodAutoscaler {{ $labels.namespace }}/{{ $labels.horizontalpodautoscaler }} is at its end",
            "It would start more pods if it might.",
        ),
        Alert(
            "KubeQuotaAlmostFull",
            'kube_resourcequota{type="used"} / ignoring (type) (kube_resourcequota{type="hard"} > 0) > 0.9',
            "15m",
            "info",
            "Quota {{ $labels.resource }} of namespace {{ $labels.namespace }} is nearly used up",
            "What would exceed it is refused.",
        ),
    ),
    "volumes": (
        Alert(
            "KubePersistentVolumeFillingUp",
            f"{_VOLUME} < 0.03 and kubelet_volume_stats_used_bytes > 0",
            "1m",
            "critical",
            "Volume {{ $labels.namespace }}/{{ $labels.persistentvolumeclaim }} is full",
            "Less than 3 % is free. Ask for more in the claim: the class grows volumes while they are used.",
        ),
        Alert(
            "KubePersistentVolumeFullInFourDays",
            f"{_VOLUME} < 0.15 and predict_linear(kubelet_volume_stats_available_bytes[6h], 4 * 24 * 3600) < 0",
            "1h",
            "warning",
            "Volume {{ $labels.namespace }}/{{ $labels.persistentvolumeclaim }} will be full within four days",
            "It fills at the pace of the last six hours.",
        ),
        Alert(
            "KubePersistentVolumeErrors",
            'kube_persistentvolume_status_phase{phase=~"Failed|Pending"} > 0',
            "5m",
            "critical",
            "Volume {{ $labels.persistentvolume }} has the phase {{ $labels.phase }}",
            "kubectl describe pv {{ $labels.persistentvolume }}",
        ),
        Alert(
            "KubePersistentVolumeClaimPending",
            'kube_persistentvolumeclaim_status_phase{phase="Pending"} > 0',
            "30m",
            "info",
            "Claim {{ $labels.namespace }}/{{ $labels.persistentvolumeclaim }} gets no volume",
            "Its events say why; a class that waits for the first pod makes none before there is one.",
        ),
    ),
    "cluster": (
        Alert(
            "KubeAPIDown",
            'absent(up{job="apiserver"} == 1)',
            "15m",
            "critical",
            "The API cannot be asked from inside the cluster",
            "Whoever runs the control plane sees why in the HostedCluster's conditions.",
        ),
        Alert(
            "KubeAPIErrors",
            'sum(rate(apiserver_request_total{code=~"5.."}[10m])) / sum(rate(apiserver_request_total[10m])) > 0.05',
            "15m",
            "warning",
            "The API answers one request in twenty with an error",
            "Often a webhook, or an API of an add-on that does not answer: kubectl get apiservices",
        ),
        Alert(
            "KubeAPISlow",
            "histogram_quantile(0.99, sum by (le, verb) (rate(apiserver_request_duration_seconds_bucket[10m]))) > 5",
            "15m",
            "warning",
            "The slowest hundredth of {{ $labels.verb }} requests takes more than five seconds",
            "The control plane lacks processor time, or its disk is slow.",
        ),
        Alert(
            "KubeAggregatedAPIDown",
            "max by (name) (aggregator_unavailable_apiservice) == 1",
            "15m",
            "warning",
            "The API {{ $labels.name }} of an add-on does not answer",
            "Namespaces cannot be deleted meanwhile. kubectl describe apiservice {{ $labels.name }}",
        ),
        Alert(
            "CoreDNSErrorsHigh",
            'sum(rate(coredns_dns_responses_total{rcode="SERVFAIL"}[10m])) '
            "/ sum(rate(coredns_dns_responses_total[10m])) > 0.03",
            "10m",
            "warning",
            "Many names cannot be looked up",
            "{{ $value | humanizePercentage }} of answers are SERVFAIL: kubectl -n kube-system logs deploy/coredns",
        ),
        Alert(
            "RouterRestartsHaproxy",
            "changes(hcp_router_haproxy_starts[1h]) > 1",
            "0s",
            "warning",
            "The proxy of the default ingress keeps ending",
            "Connections are cut each time. kubectl -n openshift-ingress logs deployment/router-default",
        ),
        Alert(
            "RouteNotServed",
            'hcp_router_routes{admitted="false"} > 0',
            "30m",
            "info",
            "Some Routes are refused",
            "Their condition Admitted has the reason.",
        ),
    ),
    "monitoring": (
        Alert(
            "PrometheusStorageFailing",
            "increase(prometheus_tsdb_compactions_failed_total[1h]) > 0 or "
            "increase(prometheus_tsdb_wal_writes_failed_total[1h]) > 0",
            "15m",
            "warning",
            "Prometheus cannot write its history",
            "The disk of its node is full or broken.",
        ),
        Alert(
            "PrometheusConfigFailing",
            "prometheus_config_last_reload_successful == 0",
            "10m",
            "critical",
            "Prometheus does not understand its configuration",
            "It goes on with the one before.",
        ),
        Alert(
            "PrometheusRulesFailing",
            "increase(prometheus_rule_evaluation_failures_total[15m]) > 0",
            "15m",
            "warning",
            "Some alerts cannot be computed",
            "kubectl -n openshift-monitoring logs prometheus-k8s-0",
        ),
    ),
}
# Sums that boards and people ask for often; computing them once is cheaper.
RECORDS: dict[str, str] = {
    "instance:node_cpu_utilisation:rate5m": (
        '1 - avg by (instance, node) (rate(node_cpu_seconds_total{mode=~"idle|iowait|steal"}[5m]))'
    ),
    "namespace:container_cpu_usage:sum": (
        'sum by (namespace) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]))'
    ),
    "namespace:container_memory_usage_bytes:sum": (
        'sum by (namespace) (container_memory_working_set_bytes{container!="",container!="POD"})'
    ),
    "cluster:capacity_cpu_cores:sum": 'sum(kube_node_status_capacity{resource="cpu"})',
    "cluster:capacity_memory_bytes:sum": 'sum(kube_node_status_capacity{resource="memory"})',
}


def text() -> str:
    return json.dumps({"groups": groups()}, indent=1) + "\n"


def groups() -> list[dict[str, Any]]:
    recorded = [{"record": name, "expr": expr} for name, expr in RECORDS.items()]
    alerts = [{"name": f"hcp-{name}", "rules": [_rule(one) for one in found]} for name, found in ALERTS.items()]
    return [*alerts, {"name": "hcp-records", "rules": recorded}]


def _rule(one: Alert) -> dict[str, Any]:
    lasting = {} if one.lasting == "0s" else {"for": one.lasting}
    return {
        "alert": one.name,
        "expr": one.expr,
        **lasting,
        "labels": {"severity": one.severity},
        "annotations": {"summary": one.summary, "description": one.description},
    }
