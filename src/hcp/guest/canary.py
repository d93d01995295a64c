"""The canary of the default ingress: a Route to a small pod on every node, asked from outside whether the way is open.

It is a HAProxy out of the router's own image that answers one sentence: no further image, a few megabytes.
"""

from __future__ import annotations

from hcp.api import manifests as m
from hcp.guest.objects import LABELS as OURS
from hcp.guest.objects import Manifest, obj

NAMESPACE, NAME, ROUTE = "openshift-ingress-canary", "ingress-canary", "canary"
PORT = 8080
# As OpenShift's answers.
ANSWER = "Healthcheck requested"
LABELS = {"ingresscanary.operator.openshift.io/daemonset-ingresscanary": "canary_controller"}
_CONFIG = f"""global
  maxconn 50
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
frontend canary
  bind :{PORT}
  http-request return status 200 content-type text/plain string "{ANSWER}"
"""


def host(domain: str) -> str:
    """The name that is asked for."""
    return f"{ROUTE}-{NAMESPACE}.{domain}"


def objects(image: str, domain: str) -> list[Manifest]:
    return [
        obj("v1", "Namespace", NAMESPACE, {}),
        obj("v1", "ConfigMap", NAME, {"data": {"haproxy.cfg": _CONFIG}}, NAMESPACE),
        _daemon_set(image),
        m.service(NAME, NAMESPACE, {"http": PORT}, labels={**LABELS, **OURS}, selector=LABELS),
        _route(domain),
    ]


def _daemon_set(image: str) -> Manifest:
    container: Manifest = {
        "name": "serve-healthcheck-canary",
        "image": image,
        "command": ["haproxy", "-db", "-f", "/etc/canary/haproxy.cfg"],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": m.http_probe("/", "http", periodSeconds=10, timeoutSeconds=5),
        "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": m.container_security(),
        "volumeMounts": [{"name": "config", "mountPath": "/etc/canary", "readOnly": True}],
    }
    pod: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": m.pod_security(),
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    spec = {
        "selector": {"matchLabels": LABELS},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    return obj("apps/v1", "DaemonSet", NAME, {"spec": spec}, NAMESPACE, LABELS)


def _route(domain: str) -> Manifest:
    spec = {
        "host": host(domain),
        "to": {"kind": "Service", "name": NAME, "weight": 100},
        "port": {"targetPort": "http"},
        "tls": {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"},
    }
    return obj("route.openshift.io/v1", "Route", ROUTE, {"spec": spec}, NAMESPACE, LABELS)
