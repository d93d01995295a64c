"""Short ways to write the usual manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]


def namespace(name: str, labels: Mapping[str, str] | None = None) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def service_account(name: str, ns: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": ns}}


def config_map(name: str, ns: str, data: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": ns},
        "data": dict(data),
    }


def rule(groups: Iterable[str], resources: Iterable[str], verbs: Iterable[str]) -> Object:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def cluster_role(name: str, rules: list[Object]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }


def cluster_role_binding(name: str, role: str, subject: Object) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def user(name: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def group(name: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def account(name: str, ns: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": ns}


def workload(kind: str, name: str, ns: str, labels: Mapping[str, str], pod: Object, **spec: Any) -> Object:
    """A Deployment or DaemonSet whose pods carry `labels`."""
    more: Object = {"replicas": 1} if kind == "Deployment" else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": ns, "labels": dict(labels)},
        "spec": {
            **more,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
            **spec,
        },
    }
