"""Short ways to write the usual manifests of Kubernetes, for everything that is not part of a hosted cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")
ALL = (*READ, *WRITE)


def rule(group: str, resources: str, verbs: Iterable[str]) -> Object:
    """One RBAC rule; ``resources`` is a list separated by spaces."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


def service_account(name: str, namespace: str, pull_secrets: Iterable[str] = ()) -> Object:
    found: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    secrets = [{"name": secret} for secret in pull_secrets]
    if secrets:
        found["imagePullSecrets"] = secrets
    return found


def account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def user(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def cluster_role(name: str, rules: list[Object]) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def role(name: str, namespace: str, rules: list[Object]) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def cluster_binding(name: str, subject: Object, role_name: str = "") -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_name or name},
        "subjects": [subject],
    }


def binding(name: str, namespace: str, subject: Object, *, kind: str = "Role", role_name: str = "") -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name or name},
        "subjects": [subject],
    }


def config_map(name: str, namespace: str, data: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Object:
    metadata: Object = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def container_security() -> Object:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def pod_security() -> Object:
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def http_probe(path: str, port: str, *, scheme: str = "HTTP", **more: int) -> Object:
    return {"httpGet": {"path": path, "port": port, "scheme": scheme}, **more}


def scraped(port: int) -> dict[str, str]:
    """Annotations by which a Prometheus without an operator finds plain metrics."""
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(port), "prometheus.io/path": "/metrics"}


def deployment(
    name: str,
    namespace: str,
    pod: Object,
    *,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    replicas: int,
    metrics: int = 0,
) -> Object:
    """`metrics`: the port on which its pods serve them."""
    noted = {"annotations": scraped(metrics)} if metrics else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(selector)},
            "template": {"metadata": {"labels": dict(labels), **noted}, "spec": pod},
        },
    }


def service(
    name: str,
    namespace: str,
    ports: Mapping[str, int],
    *,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    kind: str = "ClusterIP",
) -> Object:
    """A Service; ``ports`` gives the port by the name that it and the container's port have."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "type": kind,
            "selector": dict(selector),
            "ports": [{"name": n, "port": port, "targetPort": n, "protocol": "TCP"} for n, port in ports.items()],
        },
    }
