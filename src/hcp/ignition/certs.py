"""The bootstrap server's certificate authority and serving certificate, as Secrets.

The authority's certificate goes into every VM's pointer document, so it is made once. The serving certificate follows
the names the server is published under and is renewed before it ends.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from hcp import pki
from hcp.api.addresses import is_address
from hcp.api.names import OPERATOR_NAMESPACE
from hcp.ignition.store import LABEL, LABEL_CERTIFICATE

CA_SECRET = "ignition-server-ca-cert"
SERVING_SECRET = "ignition-server-serving-cert"
SERVICE = "ignition-server"


def own_names(namespace: str = OPERATOR_NAMESPACE) -> list[str]:
    """The names the server has inside the management cluster."""
    return [SERVICE, f"{SERVICE}.{namespace}.svc", f"{SERVICE}.{namespace}.svc.cluster.local", "localhost"]


def serving_leaf(hosts: Iterable[str], namespace: str = OPERATOR_NAMESPACE) -> pki.Leaf:
    """The certificate for all published host names and addresses."""
    names: set[str] = set(own_names(namespace))
    addresses: set[str] = {"127.0.0.1"}
    for host in hosts:
        (addresses if is_address(host) else names).add(host)
    return pki.Leaf("ignition-server", dns=tuple(sorted(names)), ips=tuple(sorted(addresses)), usage="server")


def ca_secret(pair: pki.KeyPair, namespace: str = OPERATOR_NAMESPACE) -> dict[str, Any]:
    """The Secret of the authority (keys ``ca.crt`` and ``ca.key``)."""
    return _secret(CA_SECRET, namespace, {"ca.crt": pair.cert_pem, "ca.key": pair.key_pem})


def serving_secret(pair: pki.KeyPair, ca_pem: bytes, namespace: str = OPERATOR_NAMESPACE) -> dict[str, Any]:
    """The Secret the server watches for its certificate."""
    data = {"tls.crt": pair.cert_pem, "tls.key": pair.key_pem, "ca.crt": ca_pem}
    secret = _secret(SERVING_SECRET, namespace, data)
    secret["metadata"]["labels"] = {LABEL: LABEL_CERTIFICATE}
    return secret


def read_pair(secret: Mapping[str, Any], cert: str, key: str) -> pki.KeyPair:
    """A key pair out of a Secret."""
    data = secret.get("data") or {}
    return pki.KeyPair(base64.b64decode(data.get(cert, "")), base64.b64decode(data.get(key, "")))


def _secret(name: str, namespace: str, data: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
