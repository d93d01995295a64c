"""kube-state-metrics: how objects are. It reads no Secrets and no ConfigMaps."""

from __future__ import annotations

from hcp.guest.monitoring import shared, web
from hcp.guest.monitoring.plan import STATE_IMAGE
from hcp.guest.objects import GuestParams, Manifest, cluster_role, cluster_role_binding

NAME = "kube-state-metrics"
PORT, OWN_PORT = 8443, 9443
# API group → its resources that are followed.
FOLLOWED = {
    "": (
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "services",
    ),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "autoscaling": ("horizontalpodautoscalers",),
    "batch": ("cronjobs", "jobs"),
    "networking.k8s.io": ("ingresses", "networkpolicies"),
    "policy": ("poddisruptionbudgets",),
    "storage.k8s.io": ("storageclasses", "volumeattachments"),
}


def rights() -> list[Manifest]:
    rules = [
        {"apiGroups": [group], "resources": list(kinds), "verbs": ["list", "watch"]}
        for group, kinds in FOLLOWED.items()
    ]
    return [
        cluster_role(f"hcp:{NAME}", rules),
        cluster_role_binding(f"hcp:{NAME}", f"hcp:{NAME}", shared.subject(NAME)),
    ]


def objects(g: GuestParams) -> list[Manifest]:
    kinds = sorted(kind for found in FOLLOWED.values() for kind in found)
    words = [
        "kube-state-metrics",
        f"--port={PORT}",
        f"--telemetry-port={OWN_PORT}",
        f"--resources={','.join(kinds)}",
        f"--tls-config={web.FILE}",
    ]
    container = shared.container(
        NAME,
        g.images[STATE_IMAGE],
        words,
        56,
        env=[{"name": "GOGC", "value": "50"}],
        ports=[
            {"name": "https-main", "containerPort": PORT, "protocol": "TCP"},
            {"name": "https-self", "containerPort": OWN_PORT, "protocol": "TCP"},
        ],
        readinessProbe=web.probe("https-main"),
        volumeMounts=web.mounts(),
    )
    pod = shared.pod(NAME, [container], web.volumes())
    # Never two at a time: everything would be counted twice.
    return [
        *rights(),
        shared.account(NAME),
        shared.workload("Deployment", NAME, pod, g.trust_mark, strategy={"type": "Recreate"}),
        shared.service(NAME, PORT, "https-main", headless=True),
    ]
