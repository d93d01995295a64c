"""The konnectivity agent: the nodes' side of the tunnel through which the control plane reaches them."""

from __future__ import annotations

import base64

from hcp.api.names import ANNOTATION_KONNECTIVITY_AGENT_IMAGE
from hcp.controlplane.meta import digest
from hcp.guest.objects import SYSTEM, GuestParams, Manifest, daemon_set, obj, service_account

NAME = "konnectivity-agent"
TLS = "/etc/konnectivity"
HEALTH_PORT = 2041


def objects(g: GuestParams) -> list[Manifest]:
    p = g.control_plane
    image = p.annotations.get(ANNOTATION_KONNECTIVITY_AGENT_IMAGE) or g.images.get(NAME)
    endpoint = p.konnectivity_endpoint
    if not image or endpoint is None:
        return []
    data = {"ca.crt": g.konnectivity_ca, "tls.crt": g.konnectivity_cert, "tls.key": g.konnectivity_key}
    encoded = {k: base64.b64encode(v).decode() for k, v in data.items()}
    return [
        service_account(NAME),
        obj("v1", "Secret", NAME, {"type": "Opaque", "data": encoded}, SYSTEM),
        _daemon_set(image, endpoint.host, endpoint.port, digest(encoded)),
    ]


def arguments(host: str, port: int, tls: str = TLS, node: str = "$(NODE_ADDRESS)") -> list[str]:
    return [
        f"--proxy-server-host={host}",
        f"--proxy-server-port={port}",
        f"--ca-cert={tls}/ca.crt",
        f"--agent-cert={tls}/tls.crt",
        f"--agent-key={tls}/tls.key",
        "--health-server-host=127.0.0.1",
        f"--health-server-port={HEALTH_PORT}",
        "--admin-server-port=2042",
        # Whoever wants this node comes by this agent: through any other, a node that is gone is waited for. All else
        # may come by any of them.
        f"--agent-identifiers=host={node}&default-route=true",
        "--keepalive-time=30s",
        "--probe-interval=5s",
        "--sync-interval=5s",
        "--sync-interval-cap=30s",
        "--v=1",
    ]


def _daemon_set(image: str, host: str, port: int, config_hash: str) -> Manifest:
    def probe(period: int, failures: int) -> Manifest:
        get = {"path": "/readyz", "host": "127.0.0.1", "port": HEALTH_PORT, "scheme": "HTTP"}
        return {"httpGet": get, "periodSeconds": period, "failureThreshold": failures, "timeoutSeconds": 5}

    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["proxy-agent", *arguments(host, port)],
        "env": [{"name": "NODE_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}},
        "startupProbe": probe(2, 150),
        "readinessProbe": probe(10, 3),
        "livenessProbe": probe(30, 10) | {"httpGet": {"path": "/healthz", "host": "127.0.0.1", "port": HEALTH_PORT}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 1000,
        },
        "volumeMounts": [{"name": "tls", "mountPath": TLS, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "dnsPolicy": "Default",
        "securityContext": {"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tls", "secret": {"secretName": NAME, "defaultMode": 0o440}}],
    }
    return daemon_set(NAME, pod, {"hcp/config-hash": config_hash})
