"""Prometheus, for the cluster's own parts. Its history lies on the node and ends with the pod."""

from __future__ import annotations

from hcp.guest.monitoring import rules, scraping, shared, web
from hcp.guest.monitoring.plan import PROMETHEUS_IMAGE
from hcp.guest.objects import GuestParams, Manifest, cluster_role, cluster_role_binding

# As users of OpenShift know them: the pod is prometheus-k8s-0.
NAME, CONTAINER = "prometheus-k8s", "prometheus"
PORT = 9091
CONFIG = "prometheus-k8s"
FOLDER, DATA = "/etc/prometheus", "/prometheus"
# The first bound that is met ends old samples; the volume has room for what is not yet packed.
RETENTION, RETENTION_SIZE, VOLUME = "15d", "1GB", "2Gi"


def rights() -> list[Manifest]:
    read = ["get", "list", "watch"]
    found = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": read},
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    return [
        cluster_role(f"hcp:{NAME}", found),
        cluster_role_binding(f"hcp:{NAME}", f"hcp:{NAME}", shared.subject(NAME)),
    ]


def objects(g: GuestParams, kubelet_ca: bytes) -> list[Manifest]:
    files = {"prometheus.json": scraping.text(g), "rules.json": rules.text(), "kubelet-ca.crt": kubelet_ca.decode()}
    pod = shared.pod(
        NAME,
        [_container(g)],
        [
            *web.volumes(),
            shared.from_config("config", CONFIG),
            {"name": "data", "emptyDir": {"sizeLimit": VOLUME}},
        ],
    )
    return [
        *rights(),
        shared.account(NAME),
        shared.config(CONFIG, files),
        shared.service(NAME, PORT, "web", headless=True),
        shared.workload(
            "StatefulSet",
            NAME,
            pod,
            g.trust_mark,
            2 if g.highly_available else 1,
            serviceName=NAME,
            podManagementPolicy="Parallel",
        ),
    ]


def _container(g: GuestParams) -> Manifest:
    words = [
        "prometheus",
        f"--config.file={FOLDER}/prometheus.json",
        # Nobody has to be told of another configuration, and no history is lost by it.
        "--config.auto-reload",
        "--config.auto-reload-interval=30s",
        f"--storage.tsdb.path={DATA}",
        f"--storage.tsdb.retention.time={RETENTION}",
        f"--storage.tsdb.retention.size={RETENTION_SIZE}",
        f"--web.listen-address=:{PORT}",
        f"--web.config.file={web.FILE}",
        "--log.level=warn",
    ]
    return shared.container(
        CONTAINER,
        g.images[PROMETHEUS_IMAGE],
        words,
        120,
        env=[{"name": "GOGC", "value": "50"}],
        ports=[{"name": "web", "containerPort": PORT, "protocol": "TCP"}],
        readinessProbe=web.probe("web"),
        livenessProbe={**web.probe("web"), "periodSeconds": 30, "failureThreshold": 10},
        volumeMounts=[*web.mounts(), shared.mount("config", FOLDER), {"name": "data", "mountPath": DATA}],
    )
