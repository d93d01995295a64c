"""What the pods of monitoring have in common."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from hcp.guest.monitoring.plan import NAMESPACE, Pair
from hcp.guest.objects import RBAC, Manifest, obj

NON_ROOT = 65532


def namespace() -> Manifest:
    """node-exporter looks at the machine itself, which is why nothing less than privileged will do."""
    labels = {
        "kubernetes.io/metadata.name": NAMESPACE,
        "network.openshift.io/policy-group": "monitoring",
        "openshift.io/cluster-monitoring": "true",
        "pod-security.kubernetes.io/enforce": "privileged",
    }
    return obj("v1", "Namespace", NAMESPACE, {}, labels=labels)


def account(name: str) -> Manifest:
    return obj("v1", "ServiceAccount", name, {}, NAMESPACE)


def subject(name: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}


def role_binding(name: str, namespace: str, role: str, account: str) -> Manifest:
    body = {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role}, "subjects": [subject(account)]}
    return obj(f"{RBAC}/v1", "RoleBinding", name, body, namespace)


def labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": NAMESPACE}


def tls_secret(name: str, pair: Pair) -> Manifest:
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return obj("v1", "Secret", name, {"type": "kubernetes.io/tls", "data": encoded}, NAMESPACE)


def config(name: str, data: Mapping[str, str]) -> Manifest:
    return obj("v1", "ConfigMap", name, {"data": dict(data)}, NAMESPACE)


def service(name: str, port: int, target: str, *, headless: bool = False) -> Manifest:
    spec: Manifest = {
        "selector": labels(name),
        "ports": [{"name": target, "port": port, "protocol": "TCP", "targetPort": target}],
    }
    if headless:
        spec["clusterIP"] = "None"
    return obj("v1", "Service", name, {"spec": spec}, NAMESPACE, labels(name))


def container(name: str, image: str, command: list[str], memory: int, **more: Any) -> Manifest:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": {"cpu": "10m", "memory": f"{memory}Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **more,
    }


def pod(account: str, containers: list[Manifest], volumes: list[Manifest]) -> Manifest:
    return {
        "serviceAccountName": account,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NON_ROOT,
            "fsGroup": NON_ROOT,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": containers,
        "volumes": volumes,
    }


def workload(
    kind: str, name: str, pod: Manifest, annotations: Mapping[str, str], replicas: int = 1, **more: Any
) -> Manifest:
    if replicas > 1:
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels(name)},
        }
        pod = {**pod, "topologySpreadConstraints": [spread]}
    spec: Manifest = {
        "selector": {"matchLabels": labels(name)},
        "template": {"metadata": {"labels": labels(name), "annotations": dict(annotations)}, "spec": pod},
        **more,
    }
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    return obj("apps/v1", kind, name, {"spec": spec}, NAMESPACE, labels(name))


def from_secret(volume: str, name: str) -> Manifest:
    return {"name": volume, "secret": {"secretName": name, "defaultMode": 0o440}}


def from_config(volume: str, name: str) -> Manifest:
    return {"name": volume, "configMap": {"name": name}}


def mount(volume: str, path: str) -> Manifest:
    return {"name": volume, "mountPath": path, "readOnly": True}
