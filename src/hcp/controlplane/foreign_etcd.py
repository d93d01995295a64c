"""An etcd that somebody else runs (`etcd.managementType: Unmanaged`): its address, and how we log in. Pure.

The API server alone talks to it, by the control plane's usual way out: of the management cluster's own networks it
reaches nothing, whatever the address says. The operator never calls it.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from hcp.api import names
from hcp.api.addresses import is_address
from hcp.controlplane.meta import secret
from hcp.controlplane.params import Manifest, Params

SECRET = "etcd-client-tls"
# What the user's Secret holds -> under which name the API server reads it.
KEYS = {"etcd-client-ca.crt": "ca.crt", "etcd-client.crt": "etcd-client.crt", "etcd-client.key": "etcd-client.key"}


def endpoint_problem(endpoint: str, hidden: Iterable[str] = ()) -> str:
    """Why the API server cannot use such an address; empty when it can. `hidden`: networks it must not reach."""
    shown = f"etcd.unmanaged.endpoint {endpoint[:100]!a}"
    try:
        parsed = urlsplit(endpoint)
        host, port = parsed.hostname or "", parsed.port
    except ValueError:
        return f"{shown} is not one address: it looks like https://etcd.example.com:2379"
    plain = not (parsed.path.strip("/") or parsed.query or parsed.fragment or parsed.username or parsed.password)
    if parsed.scheme != "https" or not host or port == 0 or not plain or not endpoint.isascii() or "," in endpoint:
        return f"{shown} is not one address: it looks like https://etcd.example.com:2379"
    if not is_address(host):
        wrong = names.subdomain_problem(host)
        return f"{shown}: {host[:100]!a} cannot be the name of a host, it {wrong}" if wrong else ""
    address = ipaddress.ip_address(host)
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return f"{shown}: nothing answers there for a pod"
    for text in hidden:
        network = ipaddress.ip_network(text, strict=False)
        if address.version == network.version and address in network:
            return f"{shown} lies in {network}, a network of the management cluster: control planes do not reach it"
    return ""


def read(source: Mapping[str, Any] | None) -> tuple[dict[str, bytes], str]:
    """The three files of the user's Secret, or why they are none."""
    data, found = (source or {}).get("data") or {}, {}
    for key, ours in KEYS.items():
        try:
            found[ours] = base64.b64decode(data.get(key) or "", validate=True)
        except (binascii.Error, ValueError):
            return {}, f"its key {key} is not base64"
        if not found[ours]:
            return {}, f"it has no key {key}"
    return found, _mismatch(found)


def _mismatch(files: Mapping[str, bytes]) -> str:
    try:
        x509.load_pem_x509_certificates(files["ca.crt"])
        leaf = x509.load_pem_x509_certificates(files["etcd-client.crt"])[0]
    except (ValueError, IndexError):
        return "etcd-client-ca.crt or etcd-client.crt is not a certificate in PEM"
    try:
        key = serialization.load_pem_private_key(files["etcd-client.key"], None)
    except (ValueError, TypeError):
        return "etcd-client.key is not a private key in PEM without a password"
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if key.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
        return "etcd-client.key is not the key of etcd-client.crt"
    return ""


def client_secret(p: Params, files: Mapping[str, bytes]) -> Manifest:
    """What the API server mounts; it has the same name and keys as the one we issue for an etcd of our own."""
    return secret(p, SECRET, dict(files))
