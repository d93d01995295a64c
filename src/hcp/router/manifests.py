"""What the router consists of on a cluster: pure builders."""

from __future__ import annotations

from typing import Any

from hcp.api.names import ROUTER_NAMESPACE

Object = dict[str, Any]
NAME = "router-default"
ROLE = "hcp-router"
READER = "hcp-route-reader"
HTTP_PORT = 8080
HTTPS_PORT = 8443
HEALTH_PORT = 8081
# What NetworkPolicies and tools written for OpenShift's own router select.
POD_LABELS = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
NAMESPACE_LABELS = {"name": ROUTER_NAMESPACE, "network.openshift.io/policy-group": "ingress"}


def namespace() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": ROUTER_NAMESPACE, "labels": dict(NAMESPACE_LABELS)},
    }


def rights() -> list[Object]:
    """Reading what Routes lead to, and writing only Routes."""

    def rule(group: str, resources: list[str], verbs: list[str]) -> Object:
        return {"apiGroups": [group], "resources": resources, "verbs": verbs}

    read = ["get", "list", "watch"]
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": ROUTER_NAMESPACE}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": ROLE},
            "rules": [
                rule("", ["services"], read),
                rule("discovery.k8s.io", ["endpointslices"], read),
                rule("route.openshift.io", ["routes"], [*read, "patch", "update"]),
                rule("route.openshift.io", ["routes/status"], ["patch", "update"]),
                rule("config.openshift.io", ["ingresses"], read),
            ],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": ROUTER_NAMESPACE}],
        },
        *_readers(),
    ]


def _readers() -> list[Object]:
    """CDI reads all Routes where the kind exists, but has the right only on OpenShift: without it, it stands still."""
    rbac = "rbac.authorization.k8s.io"
    read = {"apiGroups": ["route.openshift.io"], "resources": ["routes"], "verbs": ["get", "list", "watch"]}
    return [
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": READER}, "rules": [read]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": READER},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": READER},
            "subjects": [{"kind": "ServiceAccount", "name": "cdi-sa", "namespace": "cdi"}],
        },
    ]


def deployment(image: str, *, domain: str = "", replicas: int = 1, pull_policy: str = "IfNotPresent") -> Object:
    """The process; without a domain it takes the one of ingresses.config.openshift.io."""
    probe = {"port": "health", "scheme": "HTTP"}
    container: Object = {
        "name": "router",
        "image": image,
        "imagePullPolicy": pull_policy,
        "args": ["router", "run", *([f"--domain={domain}"] if domain else [])],
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": "https", "containerPort": HTTPS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", **probe}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/healthz", **probe}, "periodSeconds": 10, "initialDelaySeconds": 20},
        "resources": {"requests": {"cpu": "20m", "memory": "80Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod: Object = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": ROUTER_NAMESPACE, "labels": dict(POD_LABELS)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(POD_LABELS)},
            "template": {"metadata": {"labels": dict(POD_LABELS)}, "spec": pod},
        },
    }


def service() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": ROUTER_NAMESPACE, "labels": dict(POD_LABELS)},
        "spec": {
            "type": "LoadBalancer",
            "selector": dict(POD_LABELS),
            "ports": [
                {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
                {"name": "https", "port": 443, "targetPort": "https", "protocol": "TCP"},
            ],
        },
    }


def objects(image: str, *, domain: str = "", replicas: int = 1, pull_policy: str = "IfNotPresent") -> list[Object]:
    """Everything except the CRD, in the order it is applied."""
    process = deployment(image, domain=domain, replicas=replicas, pull_policy=pull_policy)
    return [namespace(), *rights(), process, service()]
