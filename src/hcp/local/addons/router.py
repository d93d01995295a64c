"""The router for Routes: the kind, the process, and the Service with the address that the apps domain carries."""

from __future__ import annotations

from hcp.local.addons.objects import (
    Object,
    account,
    cluster_role,
    cluster_role_binding,
    namespace,
    rule,
    service_account,
    workload,
)
from hcp.local.addresses import Addresses
from hcp.router.crd import route_crd

NAMESPACE = "openshift-ingress"
NAME = "router-default"
# What NetworkPolicies written for OpenShift's own router select.
LABELS = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
_NAMESPACE_LABELS = {"name": NAMESPACE, "network.openshift.io/policy-group": "ingress"}


def definitions() -> list[Object]:
    return [route_crd()]


def objects(plan: Addresses, image: str) -> list[Object]:
    return [
        namespace(NAMESPACE, _NAMESPACE_LABELS),
        service_account(NAME, NAMESPACE),
        cluster_role(
            "hcp-router",
            [
                rule([""], ["services", "secrets"], ["get", "list", "watch"]),
                rule(["discovery.k8s.io"], ["endpointslices"], ["get", "list", "watch"]),
                rule(["route.openshift.io"], ["routes"], ["get", "list", "watch", "patch", "update"]),
                rule(["route.openshift.io"], ["routes/status"], ["patch", "update"]),
                rule(["config.openshift.io"], ["ingresses"], ["get", "list", "watch"]),
                rule(["", "events.k8s.io"], ["events"], ["create", "patch"]),
            ],
        ),
        cluster_role_binding("hcp-router", "hcp-router", account(NAME, NAMESPACE)),
        _deployment(plan, image),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
            "spec": {
                "type": "LoadBalancer",
                "loadBalancerIP": plan.router,
                "selector": LABELS,
                "ports": [
                    {"name": "http", "port": 80, "targetPort": "http"},
                    {"name": "https", "port": 443, "targetPort": "https"},
                ],
            },
        },
    ]


def _deployment(plan: Addresses, image: str) -> Object:
    container: Object = {
        "name": "router",
        "image": image,
        "args": ["router", "run", f"--domain={plan.apps_domain}"],
        "ports": [
            {"name": "http", "containerPort": 8080},
            {"name": "https", "containerPort": 8443},
            {"name": "health", "containerPort": 8081},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 30},
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
    return workload("Deployment", NAME, NAMESPACE, LABELS, pod)
