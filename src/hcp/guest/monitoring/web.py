"""How what is asked by Prometheus, and Prometheus itself, serve: only to those with the certificate of monitoring.

Metrics tell of everybody's namespaces, so not every pod may read them. What the exporters and Prometheus have for that
is TLS with client certificates. A kubelet has none to show: it only asks whether somebody listens.
"""

from __future__ import annotations

import json

from hcp.guest.monitoring import shared
from hcp.guest.monitoring.plan import NAMESPACE
from hcp.guest.objects import Manifest

CERTIFICATE, CONFIG = "monitoring-tls", "monitoring-web"
TLS, FOLDER = "/etc/monitoring/tls", "/etc/monitoring/web"
FILE, AUTHORITY = f"{FOLDER}/web.json", f"{FOLDER}/ca.crt"


def hosts(*names: str) -> tuple[str, ...]:
    """What the certificate says; the same for all, since whoever has it may ask all."""
    return (*(f"{name}.{NAMESPACE}.svc" for name in names), "localhost")


def config(root_ca: bytes) -> Manifest:
    settings = {
        "tls_server_config": {
            "cert_file": f"{TLS}/tls.crt",
            "key_file": f"{TLS}/tls.key",
            "client_ca_file": AUTHORITY,
            "client_auth_type": "RequireAndVerifyClientCert",
            "min_version": "TLS12",
        }
    }
    asking = {"tls_config": client("prometheus-k8s")}
    files = {"web.json": _json(settings), "client.json": _json(asking), "ca.crt": root_ca.decode()}
    return shared.config(CONFIG, files)


def client(name: str) -> Manifest:
    """For who asks one of them."""
    return {
        "ca_file": AUTHORITY,
        "cert_file": f"{TLS}/tls.crt",
        "key_file": f"{TLS}/tls.key",
        "server_name": f"{name}.{NAMESPACE}.svc",
    }


def probe(port: str) -> Manifest:
    return {"tcpSocket": {"port": port}, "periodSeconds": 5, "failureThreshold": 3}


def mounts() -> list[Manifest]:
    return [shared.mount("tls", TLS), shared.mount("web", FOLDER)]


def volumes() -> list[Manifest]:
    return [shared.from_secret("tls", CERTIFICATE), shared.from_config("web", CONFIG)]


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
