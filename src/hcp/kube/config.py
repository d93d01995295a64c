"""Where a cluster is and how to prove who we are: kubeconfig files, dictionaries, or the pod's own account."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.http_proxy import Proxies, usable

# An extension in the cluster of a kubeconfig: its server is reached without the environment's proxy.
DIRECT = "hcp.local/direct"
SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class UserAuth:
    """The ways a kubeconfig user can authenticate; unset fields are not used."""

    token: str | None = None
    token_file: Path | None = None
    cert_pem: bytes | None = None
    key_pem: bytes | None = field(default=None, repr=False)
    cert_file: Path | None = None
    key_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    exec_plugin: Mapping[str, Any] | None = None
    impersonate: str | None = None
    impersonate_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """One cluster as one user: what a kubeconfig context means."""

    server: str
    ca_pem: bytes | None = None
    ca_file: Path | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    auth: UserAuth = UserAuth()
    namespace: str = "default"
    context: str = ""
    proxy: str | None = field(default=None, repr=False)
    """An HTTP proxy between us and the server, with its login."""

    @classmethod
    def from_kubeconfig_dict(
        cls, data: Mapping[str, Any], context: str | None = None, base_dir: Path | None = None
    ) -> ClusterConfig:
        """Read one context of a parsed kubeconfig; relative file names count from `base_dir`."""
        name = context or data.get("current-context") or _only_context(data)
        entry = _named(data, "contexts", "context", name)
        cluster = _named(data, "clusters", "cluster", entry.get("cluster") or "")
        user = _named(data, "users", "user", entry["user"]) if entry.get("user") else {}
        server = cluster.get("server")
        if not server:
            raise HcpError(f"The kubeconfig names no server for cluster {entry.get('cluster')}.")
        base = base_dir or Path()
        return cls(
            server=str(server).rstrip("/"),
            ca_pem=_inline(cluster, "certificate-authority-data"),
            ca_file=_file(cluster, "certificate-authority", base),
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
            tls_server_name=cluster.get("tls-server-name"),
            auth=_user_auth(user, base),
            namespace=entry.get("namespace") or "default",
            context=name,
            proxy=_proxy(cluster, str(server)),
        )

    @classmethod
    def in_cluster(cls, directory: Path = SERVICE_ACCOUNT_DIR) -> ClusterConfig:
        """The configuration of a pod with a service account."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not (directory / "token").exists():
            raise HcpError("This process does not run in a pod with a service account token.")
        host = f"[{host}]" if ":" in host else host
        ns_file = directory / "namespace"
        return cls(
            server=f"https://{host}:{port}",
            ca_file=directory / "ca.crt",
            auth=UserAuth(token_file=directory / "token"),
            namespace=ns_file.read_text().strip() if ns_file.exists() else "default",
            context="in-cluster",
        )

    def with_server(self, server: str, tls_server_name: str | None = None) -> ClusterConfig:
        """The same identity at another address, for example a Service in front of the same API server."""
        return replace(self, server=server.rstrip("/"), tls_server_name=tls_server_name or self.tls_server_name)


def load_config(path: str | os.PathLike[str] | None = None, context: str | None = None) -> ClusterConfig:
    """The cluster a person means: the named file, $KUBECONFIG, the pod's own account, then ~/.kube/config."""
    if path is not None:
        return _from_files([Path(path)], context)
    from_env = [Path(p) for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    if from_env:
        return _from_files(from_env, context)
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT_DIR / "token").exists():
        return ClusterConfig.in_cluster(SERVICE_ACCOUNT_DIR)
    home = Path.home() / ".kube" / "config"
    if not home.exists():
        raise HcpError(
            "There is no kubeconfig to tell which cluster to use.",
            hint="Set KUBECONFIG to a kubeconfig file, pass --kubeconfig, or put one at ~/.kube/config.",
        )
    return _from_files([home], context)


def parse_kubeconfig(data: bytes | str, source: str) -> dict[str, Any]:
    """Parse kubeconfig text (YAML or JSON)."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        parsed = yaml.load(data, Loader=loader)  # noqa: S506 - a safe loader either way
    except yaml.YAMLError as exc:
        raise HcpError(f"{source} is not valid YAML", cause=str(exc).replace("\n", " ")) from exc
    if not isinstance(parsed, dict):
        raise HcpError(f"{source} is not a kubeconfig: it holds no mapping.")
    return parsed


def _from_files(paths: Iterable[Path], context: str | None) -> ClusterConfig:
    """Merge kubeconfig files as kubectl does: the first to set a name wins."""
    merged: dict[str, Any] = {"contexts": [], "clusters": [], "users": []}
    found = False
    for path in paths:
        try:
            data = parse_kubeconfig(path.read_bytes(), f"The kubeconfig {path}")
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise HcpError(f"The kubeconfig {path} cannot be read", cause=exc.strerror or str(exc)) from exc
        found = True
        _absolute_files(data, path.resolve().parent)
        merged["current-context"] = merged.get("current-context") or data.get("current-context")
        for section in ("contexts", "clusters", "users"):
            have = {e.get("name") for e in merged[section]}
            merged[section] += [e for e in data.get(section) or [] if e.get("name") not in have]
    if not found:
        raise HcpError(
            f"The kubeconfig {', '.join(str(p) for p in paths)} does not exist.",
            hint="Check the path given with --kubeconfig or in KUBECONFIG.",
        )
    return ClusterConfig.from_kubeconfig_dict(merged, context)


def _absolute_files(data: Mapping[str, Any], base: Path) -> None:
    for entry in data.get("clusters") or []:
        _absolute(entry.get("cluster") or {}, ("certificate-authority",), base)
    for entry in data.get("users") or []:
        _absolute(entry.get("user") or {}, ("client-certificate", "client-key", "tokenFile"), base)


def _absolute(body: dict[str, Any], keys: Iterable[str], base: Path) -> None:
    for key in keys:
        if body.get(key):
            body[key] = str(base / body[key])


def _only_context(data: Mapping[str, Any]) -> str:
    contexts = data.get("contexts") or []
    if len(contexts) == 1:
        return str(contexts[0].get("name"))
    raise HcpError(
        "The kubeconfig has no current-context.",
        hint="Choose one: " + (", ".join(str(c.get("name")) for c in contexts) or "it has no contexts at all."),
    )


def _named(data: Mapping[str, Any], section: str, inner: str, name: str) -> Mapping[str, Any]:
    entries = data.get(section) or []
    for entry in entries:
        if entry.get("name") == name:
            body = entry.get(inner) or {}
            if isinstance(body, Mapping):
                return body
    names = ", ".join(str(e.get("name")) for e in entries) or "none"
    raise HcpError(f'The kubeconfig has no {inner} named "{name}".', hint=f"It has: {names}.")


def _inline(body: Mapping[str, Any], key: str) -> bytes | None:
    value = body.get(key)
    if not value:
        return None
    try:
        return base64.b64decode(value, validate=False)
    except (binascii.Error, ValueError, TypeError) as exc:
        raise HcpError(f"The field {key} of the kubeconfig is not base64.") from exc


def _file(body: Mapping[str, Any], key: str, base: Path) -> Path | None:
    value = body.get(key)
    return base / value if value else None


def _proxy(cluster: Mapping[str, Any], server: str) -> str | None:
    """`proxy-url`, else that of the environment; embedded clusters are on this machine, whatever that says."""
    if cluster.get("proxy-url"):
        return usable(str(cluster["proxy-url"]), "The kubeconfig's proxy-url")
    if any(isinstance(entry, Mapping) and entry.get("name") == DIRECT for entry in cluster.get("extensions") or []):
        return None
    return Proxies.of(os.environ).for_url(server)


def _user_auth(user: Mapping[str, Any], base: Path) -> UserAuth:
    cert, key = _inline(user, "client-certificate-data"), _inline(user, "client-key-data")
    return UserAuth(
        token=user.get("token"),
        token_file=_file(user, "tokenFile", base),
        cert_pem=cert,
        key_pem=key,
        cert_file=None if cert else _file(user, "client-certificate", base),
        key_file=None if key else _file(user, "client-key", base),
        username=user.get("username"),
        password=user.get("password"),
        exec_plugin=user.get("exec"),
        impersonate=user.get("as"),
        impersonate_groups=tuple(user.get("as-groups") or ()),
    )
