"""Kubeconfigs with everything inside, so that they work from any place."""

from __future__ import annotations

import base64
import json
from typing import Any


def kubeconfig(
    server: str, ca_pem: bytes | None, cert_pem: bytes, key_pem: bytes, name: str = "admin"
) -> dict[str, Any]:
    """A kubeconfig for one server and one client certificate. Without `ca_pem` the system's roots decide."""
    cluster: dict[str, Any] = {"server": server}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = _b64(ca_pem)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [
            {
                "name": name,
                "user": {"client-certificate-data": _b64(cert_pem), "client-key-data": _b64(key_pem)},
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": "cluster", "user": name, "namespace": "default"}}],
        "current-context": name,
        "preferences": {},
    }


def kubeconfig_yaml(config: dict[str, Any]) -> bytes:
    """As stored in Secrets. JSON is YAML, renders the same everywhere and needs no YAML library."""
    return (json.dumps(config, indent=2) + "\n").encode()


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
