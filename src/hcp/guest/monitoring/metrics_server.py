"""metrics-server: what `kubectl top` and HorizontalPodAutoscalers ask.

kube-apiserver calls it as part of its own API (an APIService), through konnectivity, and shows it whom it speaks for
by its aggregator's certificate.
"""

from __future__ import annotations

import base64

from hcp.controlplane.meta import digest
from hcp.guest.monitoring import shared
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE, GuestMonitoring
from hcp.guest.objects import SYSTEM, GuestParams, Manifest, cluster_role, cluster_role_binding, obj

NAME = "metrics-server"
GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API = f"{VERSION}.{GROUP}"
PORT = 10250
TLS, KUBELET_CA = "/etc/metrics-server/tls", "/etc/metrics-server/kubelet"
# The binding that lets it read whom kube-apiserver speaks for.
READER = "metrics-server-auth-reader"
CERTIFICATE, AUTHORITY = "metrics-server-tls", "kubelet-serving-ca"
# How often kubelets are asked.
RESOLUTION = "15s"
_READ = ["get", "list", "watch"]


def objects(g: GuestParams, given: GuestMonitoring) -> list[Manifest]:
    if given.metrics_server is None:
        return []
    made = [
        *rights(),
        shared.account(NAME),
        shared.role_binding(READER, SYSTEM, "extension-apiserver-authentication-reader", NAME),
        shared.tls_secret(CERTIFICATE, given.metrics_server),
        _deployment(g, given),
        shared.service(NAME, 443, "https"),
    ]
    return [*made, api(given)] if given.announced else made


def rights() -> list[Manifest]:
    """Of metrics-server, and of everybody who may view."""
    reader = cluster_role(
        "system:aggregated-metrics-reader",
        [{"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": _READ}],
    )
    reader["metadata"]["labels"] |= {
        f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")
    }
    rules = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": _READ},
    ]
    me = shared.subject(NAME)
    return [
        reader,
        cluster_role("system:metrics-server", rules),
        cluster_role_binding("system:metrics-server", "system:metrics-server", me),
        cluster_role_binding("metrics-server:system:auth-delegator", "system:auth-delegator", me),
    ]


def api(given: GuestMonitoring) -> Manifest:
    """What makes it a part of the hosted API. The server is believed by the cluster's own authority."""
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"name": NAME, "namespace": NAMESPACE, "port": 443},
        "caBundle": base64.b64encode(given.root_ca).decode(),
    }
    return obj("apiregistration.k8s.io/v1", "APIService", API, {"spec": spec})


def _deployment(g: GuestParams, given: GuestMonitoring) -> Manifest:
    words = [
        "metrics-server",
        f"--secure-port={PORT}",
        f"--tls-cert-file={TLS}/tls.crt",
        f"--tls-private-key-file={TLS}/tls.key",
        f"--kubelet-certificate-authority={KUBELET_CA}/ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        f"--metric-resolution={RESOLUTION}",
    ]
    container = shared.container(
        NAME,
        g.images[METRICS_IMAGE],
        words,
        40,
        env=[{"name": "GOGC", "value": "50"}],
        ports=[{"name": "https", "containerPort": PORT, "protocol": "TCP"}],
        readinessProbe=_probe("/readyz", periodSeconds=5, failureThreshold=3),
        livenessProbe=_probe("/livez", periodSeconds=30, failureThreshold=5, initialDelaySeconds=30),
        volumeMounts=[shared.mount("tls", TLS), shared.mount("kubelet-ca", KUBELET_CA)],
    )
    volumes = [shared.from_secret("tls", CERTIFICATE), shared.from_config("kubelet-ca", AUTHORITY)]
    # Certificates are read again when they change; whom to believe only at the start.
    marks = {**g.trust_mark, "hcp/config-hash": digest(given.kubelet_ca.decode())}
    pod = shared.pod(NAME, [container], volumes)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    return shared.workload("Deployment", NAME, pod, marks, 2 if g.highly_available else 1, strategy=rolling)


def _probe(path: str, **more: int) -> Manifest:
    return {"httpGet": {"path": path, "port": "https", "scheme": "HTTPS"}, "timeoutSeconds": 5, **more}
