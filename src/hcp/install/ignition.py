"""The one server of boot documents: it can read its own namespace and nothing else."""

from __future__ import annotations

from hcp.api import manifests, names
from hcp.api.manifests import (
    Object,
    account,
    binding,
    container_security,
    http_probe,
    pod_security,
    role,
    rule,
    service_account,
)
from hcp.install.base import pull_secrets
from hcp.install.options import Options

NAME = names.IGNITION_SERVER
PORT = 9090
METRICS_PORT = 8080
LABELS = {"app": NAME, names.LABEL_COMPONENT: NAME}


def deployment(options: Options) -> Object:
    container = {
        "name": NAME,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "args": [
            "ignition-server",
            "run",
            f"--namespace={options.namespace}",
            f"--port={PORT}",
            f"--metrics-port={METRICS_PORT}",
        ],
        "ports": [
            {"name": "https", "containerPort": PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        # It listens once the operator made its certificate.
        "readinessProbe": http_probe("/healthz", "https", scheme="HTTPS", periodSeconds=2),
        "livenessProbe": http_probe("/healthz", "metrics", periodSeconds=20, failureThreshold=5),
        "resources": {"requests": {"cpu": "10m", "memory": "60Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": names.PRIORITY_CONTROL_PLANE,
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
    }
    return manifests.deployment(
        NAME,
        options.namespace,
        pod,
        labels=LABELS,
        selector={"app": NAME},
        replicas=options.replicas,
        metrics=METRICS_PORT,
    )


def service(options: Options) -> Object:
    return manifests.service(NAME, options.namespace, {"https": 443}, labels=LABELS, selector={"app": NAME})


def route(options: Options) -> Object:
    """Booting machines come in here; the router of the cluster chooses the host."""
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": NAME, "namespace": options.namespace, "labels": dict(LABELS)},
        "spec": {
            "to": {"kind": "Service", "name": NAME, "weight": 100},
            "port": {"targetPort": "https"},
            "tls": {"termination": "passthrough", "insecureEdgeTerminationPolicy": "None"},
            "wildcardPolicy": "None",
        },
    }


def objects(options: Options) -> list[Object]:
    rules = [rule("", "secrets", ["get", "list", "watch", "patch"])]
    return [
        service_account(NAME, options.namespace, pull_secrets(options)),
        role(NAME, options.namespace, rules),
        binding(NAME, options.namespace, account(NAME, options.namespace)),
        deployment(options),
        service(options),
        route(options),
    ]
