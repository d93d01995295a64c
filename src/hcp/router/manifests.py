"""What the router consists of on a cluster: pure builders."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api import manifests as m
from hcp.api.manifests import Object
from hcp.api.names import ROUTER_NAMESPACE
from hcp.router import sleep_policy, status_policy

NAME = "router-default"
ROLE = "hcp-router"
READER = "hcp-route-reader"
HTTP_PORT = 8080
HTTPS_PORT = 8443
HEALTH_PORT = 8081
# Where nodes say by name which hosted API they want: the port of the pod, and that of the Service.
NAMED, NAMED_PORT, NAMED_SERVICE_PORT = "named", 8444, 6443
GATEWAY = "gateway.networking.k8s.io"
FOREIGN_WILDCARDS = "--allow-hosts-under-foreign-wildcards"
WAKE_SLEEPING = "--wake-sleeping"
# What NetworkPolicies and tools written for OpenShift's own router select.
POD_LABELS = {"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}
NAMESPACE_LABELS = {"name": ROUTER_NAMESPACE, "network.openshift.io/policy-group": "ingress"}


def namespace() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": ROUTER_NAMESPACE, "labels": dict(NAMESPACE_LABELS)},
    }


def rights(*, ends_tls: bool = False) -> list[Object]:
    """Reading what Routes lead to, and writing only Routes; where it ends TLS, certificates and Ingresses too."""
    rules = [
        m.rule("", "services", m.READ),
        m.rule("discovery.k8s.io", "endpointslices", m.READ),
        m.rule("route.openshift.io", "routes", [*m.READ, "patch", "update"]),
        m.rule("route.openshift.io", "routes/status", ["patch", "update"]),
        m.rule("config.openshift.io", "ingresses", m.READ),
        m.rule("", "events", ["create", "patch"]),
    ]
    if ends_tls:
        rules += [
            m.rule("", "secrets", m.READ),
            m.rule("networking.k8s.io", "ingresses ingressclasses", m.READ),
            m.rule("networking.k8s.io", "ingresses/status", ["patch", "update"]),
            m.rule("apiextensions.k8s.io", "customresourcedefinitions", m.READ),
            m.rule("", "namespaces", m.READ),
            m.rule(GATEWAY, "gatewayclasses gateways httproutes tlsroutes referencegrants", m.READ),
            m.rule(
                GATEWAY,
                "gatewayclasses/status gateways/status httproutes/status tlsroutes/status",
                ["patch", "update"],
            ),
        ]
    return [
        m.service_account(NAME, ROUTER_NAMESPACE),
        m.cluster_role(ROLE, rules),
        m.cluster_binding(ROLE, m.account(NAME, ROUTER_NAMESPACE)),
        *([] if ends_tls else _readers()),
    ]


def _readers() -> list[Object]:
    """CDI reads all Routes where the kind exists, but has the right only on OpenShift: without it, it stands still."""
    return [
        m.cluster_role(READER, [m.rule("route.openshift.io", "routes", m.READ)]),
        m.cluster_binding(READER, m.account("cdi-sa", "cdi")),
    ]


def deployment(
    image: str,
    *,
    domain: str = "",
    replicas: int = 1,
    pull_policy: str = "IfNotPresent",
    foreign_wildcards: bool = False,
    options: Iterable[str] = (),
) -> Object:
    """The process; without a domain it takes the one of ingresses.config.openshift.io."""
    where = [f"--domain={domain}"] if domain else []
    words = [*where, *([FOREIGN_WILDCARDS] if foreign_wildcards else []), *options]
    container: Object = {
        "name": "router",
        "image": image,
        "imagePullPolicy": pull_policy,
        "args": ["router", "run", *words],
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
            {"name": "https", "containerPort": HTTPS_PORT, "protocol": "TCP"},
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        # HAProxy may take all of a small machine's processor, and this process answers late then: a router that is busy
        # must neither be taken out of its Service for it nor ended with all its connections, nor ended while it starts.
        "startupProbe": m.http_probe("/healthz", "health", periodSeconds=1, timeoutSeconds=5, failureThreshold=300),
        "readinessProbe": m.http_probe("/readyz", "health", periodSeconds=1, timeoutSeconds=5),
        "livenessProbe": m.http_probe("/healthz", "health", periodSeconds=20, timeoutSeconds=15, failureThreshold=6),
        # As many connections as HAProxy takes need some 650 MB.
        "resources": {"requests": {"cpu": "20m", "memory": "80Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": m.container_security(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod: Object = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "securityContext": m.pod_security(),
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
    }
    return m.deployment(
        NAME,
        ROUTER_NAMESPACE,
        pod,
        labels=POD_LABELS,
        selector=POD_LABELS,
        replicas=replicas,
        metrics=HEALTH_PORT,
    )


def service() -> Object:
    ports = {"http": 80, "https": 443, NAMED: NAMED_SERVICE_PORT}
    return m.service(NAME, ROUTER_NAMESPACE, ports, labels=POD_LABELS, selector=POD_LABELS, kind="LoadBalancer")


def objects(
    image: str,
    *,
    domain: str = "",
    replicas: int = 1,
    pull_policy: str = "IfNotPresent",
    foreign_wildcards: bool = False,
) -> list[Object]:
    """Everything except the CRD, in the order it is applied."""
    process = deployment(
        image,
        domain=domain,
        replicas=replicas,
        pull_policy=pull_policy,
        foreign_wildcards=foreign_wildcards,
        options=(f"--named-port={NAMED_PORT}", WAKE_SLEEPING),
    )
    ports = process["spec"]["template"]["spec"]["containers"][0]["ports"]
    ports.append({"name": NAMED, "containerPort": NAMED_PORT, "protocol": "TCP"})
    return [namespace(), *rights(), *status_policy.objects(), *sleep_policy.objects(), process, service()]
