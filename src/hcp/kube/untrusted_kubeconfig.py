"""Kubeconfigs that were found in a cluster, and so were written by somebody we do not trust.

An ordinary kubeconfig may run programs, read files of whoever loads it and send what it read anywhere. One that comes
out of a Secret has only a server with its CA, and a token or a client certificate, all written out. Everything else is
refused by name: what is dropped silently would surprise its owner.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from hcp.errors import HcpError
from hcp.kube import bounded_yaml
from hcp.kube.config import ClusterConfig, UserAuth

MAX_BYTES = 256 * 1024
MAX_TEXT = 16 * 1024
_CLUSTER = ("server", "certificate-authority-data", "tls-server-name")
_USER = ("token", "client-certificate-data", "client-key-data")
# Of no effect on us; they are left out of the copy.
_IGNORED = frozenset({"extensions", "disable-compression"})
_HARMLESS = {"insecure-skip-tls-verify": False}
_TOKEN = re.compile(r"[\x21-\x7e]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?\.?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
FLATTEN = (
    "Write tokens, certificates and keys into the kubeconfig itself: "
    "kubectl config view --minify --flatten --raw does so for files. Instead of a login by a program use a token."
)


class RefusedKubeconfig(HcpError):
    """A kubeconfig that asks for more than a kubeconfig out of a Secret may; `field` says where."""

    def __init__(self, source: str, field: str, why: str) -> None:
        super().__init__(f"{source} is refused: {field} {why}", hint=FLATTEN)
        self.field = field


def load(data: bytes | str, source: str = "The kubeconfig") -> ClusterConfig:
    """The current context of a kubeconfig from a Secret; raises when anything but plain inline data is in it."""
    return _read(_parse(data, source), source)


def plain(data: bytes | str, source: str = "The kubeconfig") -> dict[str, Any]:
    """A new kubeconfig with what `load` took and nothing else, for readers that are less careful."""
    parsed = _parse(data, source)
    config = _read(parsed, source)
    names = _names(parsed, source)
    cluster: dict[str, Any] = {"server": config.server}
    if config.ca_pem:
        cluster["certificate-authority-data"] = _b64(config.ca_pem)
    if config.tls_server_name:
        cluster["tls-server-name"] = config.tls_server_name
    user: dict[str, Any] = {}
    if config.auth.token:
        user["token"] = config.auth.token
    if config.auth.cert_pem and config.auth.key_pem:
        user["client-certificate-data"] = _b64(config.auth.cert_pem)
        user["client-key-data"] = _b64(config.auth.key_pem)
    context = {"cluster": names[1], "user": names[2], "namespace": config.namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": names[1], "cluster": cluster}],
        "users": [{"name": names[2], "user": user}],
        "contexts": [{"name": names[0], "context": context}],
        "current-context": names[0],
        "preferences": {},
    }


def plain_text(data: bytes | str, source: str = "The kubeconfig") -> bytes:
    """The same as text, in the form our own kubeconfigs have."""
    return (json.dumps(plain(data, source), indent=2) + "\n").encode()


def _parse(data: bytes | str, source: str) -> Mapping[str, Any]:
    documents = [d for d in bounded_yaml.load(data, source, max_bytes=MAX_BYTES, max_depth=16) if d is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise HcpError(f"{source} is not a kubeconfig: it has to be one YAML mapping.")
    return documents[0]


def _names(parsed: Mapping[str, Any], source: str) -> tuple[str, str, str]:
    """Context, cluster and user that count."""
    contexts = _entries(parsed, "contexts", source)
    wanted = parsed.get("current-context")
    if not wanted and len(contexts) == 1:
        wanted = contexts[0].get("name")
    name = _text(wanted, "current-context", source)
    context = _named(parsed, "contexts", "context", name, source)
    cluster = _text(context.get("cluster"), "contexts[].context.cluster", source)
    return name, cluster, _text(context.get("user"), "contexts[].context.user", source)


def _read(parsed: Mapping[str, Any], source: str) -> ClusterConfig:
    context, cluster_name, user_name = _names(parsed, source)
    cluster = _named(parsed, "clusters", "cluster", cluster_name, source)
    user = _named(parsed, "users", "user", user_name, source)
    _only(cluster, "clusters[].cluster", _CLUSTER, source)
    _only(user, "users[].user", _USER, source)
    server_name = cluster.get("tls-server-name") or None
    if server_name is not None and not _matches(_HOST, server_name):
        raise RefusedKubeconfig(source, "clusters[].cluster.tls-server-name", "is not a host name")
    namespace = _named(parsed, "contexts", "context", context, source).get("namespace") or "default"
    if not _matches(_NAMESPACE, namespace):
        raise RefusedKubeconfig(source, "contexts[].context.namespace", "is not the name of a namespace")
    return ClusterConfig(
        server=_server(cluster, source),
        ca_pem=_pem(cluster, "clusters[].cluster", "certificate-authority-data", source),
        tls_server_name=server_name,
        auth=_auth(user, source),
        namespace=namespace,
        context=context,
    )


def _auth(user: Mapping[str, Any], source: str) -> UserAuth:
    token = user.get("token") or None
    if token is not None and (not _matches(_TOKEN, token) or len(token) > MAX_TEXT):
        raise RefusedKubeconfig(source, "users[].user.token", "is not a token")
    cert = _pem(user, "users[].user", "client-certificate-data", source)
    key = _pem(user, "users[].user", "client-key-data", source)
    if (cert is None) != (key is None):
        raise RefusedKubeconfig(source, "users[].user", "has a client certificate or a key without the other")
    if token is None and cert is None:
        raise RefusedKubeconfig(
            source, "users[].user", "has neither a token nor client-certificate-data with client-key-data"
        )
    return UserAuth(token=token, cert_pem=cert, key_pem=key)


def _server(cluster: Mapping[str, Any], source: str) -> str:
    field, server = "clusters[].cluster.server", cluster.get("server")
    if not isinstance(server, str) or len(server) > 2048 or not _TOKEN.fullmatch(server):
        raise RefusedKubeconfig(source, field, "is not an address such as https://api.example.com:6443")
    try:
        parts = urlsplit(server)
        host, _port = parts.hostname or "", parts.port
    except ValueError as exc:
        raise RefusedKubeconfig(source, field, f"cannot be read: {exc}") from exc
    if parts.scheme != "https":
        raise RefusedKubeconfig(source, field, f"has to begin with https://, not {parts.scheme[:20]!r}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise RefusedKubeconfig(source, field, "may hold a host, a port and a path, nothing else")
    _host(host, field, source)
    return server.rstrip("/")


def _host(host: str, field: str, source: str) -> None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if not _HOST.fullmatch(host):
            raise RefusedKubeconfig(source, field, "has no valid host") from None
        return
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        raise RefusedKubeconfig(source, field, f"points to {address}, which belongs to one machine and is no cluster")


def _only(body: Mapping[str, Any], where: str, allowed: tuple[str, ...], source: str) -> None:
    for key, value in body.items():
        if key in allowed or key in _IGNORED or (key in _HARMLESS and value is _HARMLESS[key]) or value in (None, ""):
            continue
        why = f"may not be used in a kubeconfig from a Secret, only {', '.join(allowed)}"
        raise RefusedKubeconfig(source, f"{where}.{str(key)[:60] if isinstance(key, str) else '?'}", why)


def _entries(parsed: Mapping[str, Any], section: str, source: str) -> list[Mapping[str, Any]]:
    entries = parsed.get(section)
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise RefusedKubeconfig(source, section, "is not a list of named entries")
    return entries


def _named(parsed: Mapping[str, Any], section: str, inner: str, name: str, source: str) -> Mapping[str, Any]:
    found = [e for e in _entries(parsed, section, source) if e.get("name") == name]
    if len(found) != 1 or not isinstance(found[0].get(inner), dict):
        raise RefusedKubeconfig(source, section, f"has to have exactly one entry named {name!r} with a {inner}")
    body: Mapping[str, Any] = found[0][inner]
    return body


def _text(value: Any, field: str, source: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 253 or not value.isprintable():
        raise RefusedKubeconfig(source, field, "is not a name of 1 to 253 characters")
    return value


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _pem(body: Mapping[str, Any], where: str, key: str, source: str) -> bytes | None:
    value = body.get(key)
    if value in (None, ""):
        return None
    try:
        if not isinstance(value, str):
            raise ValueError("it is no text")
        data = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise RefusedKubeconfig(source, f"{where}.{key}", "is not base64") from exc
    if b"-----BEGIN " not in data or not data.isascii():
        raise RefusedKubeconfig(source, f"{where}.{key}", "is not PEM in base64")
    return data


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
