"""The OAuth server of a hosted cluster: dex, under the names that OpenShift has for such a thing.

It keeps what it knows in memory: one replica, no database, no way to the guest's API. When it starts anew, people log
in again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.addresses import in_url
from hcp.api.paths import at
from hcp.controlplane import authentication, htpasswd, outside_proxy, tls_profiles
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.identity_providers import CONFIG_DIR, USERS_DIR, Providers
from hcp.controlplane.meta import MANAGER, component_labels, obj, secret
from hcp.controlplane.params import LOGIN_IMAGE, Endpoint, Manifest, Params
from hcp.controlplane.pod import (
    Pod,
    container,
    go_environment,
    http_probe,
    requests,
    secret_volume,
    template,
)
from hcp.controlplane.services import published_service
from hcp.pki import Leaf

COMPONENT = names.OAUTH_SERVER
PORT, METRICS_PORT = 6443, 5558
CONFIG, USERS, LEAF = "oauth-openshift", "oauth-openshift-users", "oauth-server-crt"
FILE, KUBEADMIN_FILE = "config.json", "kubeadmin"
TLS_DIR = "/etc/dex/tls"
# Tokens are believed until they end, whatever happens to their user; how long a login lasts is another thing.
TOKEN_SECONDS = 15 * 60
LOGIN_SECONDS = 24 * 3600


def leaf(endpoint: Endpoint, namespace: str) -> LeafSecret:
    names_, addresses = [COMPONENT, f"{COMPONENT}.{namespace}.svc"], ["127.0.0.1"]
    (addresses if endpoint.is_ip else names_).append(endpoint.host)
    return LeafSecret(LEAF, "root-ca", Leaf(COMPONENT, (), tuple(names_), tuple(addresses), usage="server"))


def issuer(endpoint: Endpoint) -> str:
    """As tokens name it: without the port that everybody assumes."""
    return endpoint.url.removesuffix(f":{names.ROUTE_PORT}")


def service(p: Params) -> Manifest:
    port: Manifest = {"name": "https", "port": PORT, "protocol": "TCP", "targetPort": "https"}
    return published_service(p, COMPONENT, p.published("OAuthServer"), port, component=COMPONENT)


def password_secret(p: Params, password: str) -> Manifest:
    return secret(p, names.KUBEADMIN_PASSWORD, {names.KUBEADMIN_KEY: password.encode()})


def password_for_users(p: Params, password: str, owner: Mapping[str, Any]) -> Manifest:
    """Beside the HostedCluster, under the name its status tells."""
    made = secret(p, f"{p.name}-{names.KUBEADMIN_PASSWORD}", {names.KUBEADMIN_KEY: password.encode()})
    made["metadata"] |= {"namespace": p.cluster_namespace, "ownerReferences": [dict(owner)]}
    return made


def kubeadmin_hash(p: Params, password: str) -> str:
    return htpasswd.hashed(password, p.cluster_uid)


def users(p: Params, providers: Providers, password: str) -> Manifest:
    """Files that are read at every login: another content of them starts nothing anew."""
    files = {_users_file(number): content for number, content in enumerate(providers.users.values())}
    if password:
        files[KUBEADMIN_FILE] = htpasswd.line(authentication.KUBEADMIN, kubeadmin_hash(p, password))
    return secret(p, USERS, files)


def _users_file(number: int) -> str:
    return f"users-{number}"


def config(
    p: Params, spec: Mapping[str, Any], endpoint: Endpoint, providers: Providers, *, kubeadmin: bool
) -> Manifest:
    where = issuer(endpoint)
    files = [{"provider": "", "path": f"{USERS_DIR}/{KUBEADMIN_FILE}"}] if kubeadmin else []
    files += [
        {"provider": name, "path": f"{USERS_DIR}/{_users_file(number)}"} for number, name in enumerate(providers.users)
    ]
    connectors = list(providers.connectors)
    if files:
        own = {
            "type": "htpasswd",
            "id": authentication.PASSWORDS,
            "name": _title(providers),
            "config": {"files": files},
        }
        connectors.insert(0, own)
    body: Manifest = {
        "issuer": where,
        "storage": {"type": "memory"},
        "web": {
            "https": f"{in_url(p.everywhere)}:{PORT}",
            "tlsCert": f"{TLS_DIR}/tls.crt",
            "tlsKey": f"{TLS_DIR}/tls.key",
            "tlsMinVersion": "1.3" if tls_profiles.of(p.api_config).version == tls_profiles.TLS13 else "1.2",
        },
        "telemetry": {"http": f"{in_url(p.everywhere)}:{METRICS_PORT}"},
        "frontend": {"issuer": p.name},
        "logger": {"level": "info", "format": "json"},
        "expiry": _expiry(spec),
        "oauth2": {
            "grantTypes": ["authorization_code", "refresh_token", "password"],
            "responseTypes": ["code"],
            "skipApprovalScreen": True,
            **({"passwordConnector": authentication.PASSWORDS} if files else {}),
        },
        # Public: whoever has the command line has its secret. Only addresses of the user's own machine are called back.
        "staticClients": [{"id": names.OAUTH_CLIENT, "name": "Command line", "public": True}],
        "connectors": connectors,
    }
    text = json.dumps(body, indent=1, sort_keys=True) + "\n"
    return secret(p, CONFIG, {FILE: text.encode(), **providers.files})


def _title(providers: Providers) -> str:
    return " or ".join(providers.users) if providers.users else authentication.KUBEADMIN


def _expiry(spec: Mapping[str, Any]) -> Manifest:
    """How long a login lasts is what OpenShift calls the age of a token; ours are short and renewed while it lasts."""
    given = at(spec, "configuration.oauth.tokenConfig") or {}
    most = int(given.get("accessTokenMaxAgeSeconds") or 0) or LOGIN_SECONDS
    idle = str(given.get("accessTokenInactivityTimeout") or "")
    if not idle and (seconds := int(given.get("accessTokenInactivityTimeoutSeconds") or 0)) > 0:
        idle = f"{seconds}s"
    refresh = {"absoluteLifetime": f"{max(most, 60)}s", "reuseInterval": "30s"}
    if idle:
        refresh["validIfNotUsedFor"] = idle
    return {"idTokens": f"{max(min(most, TOKEN_SECONDS), 60)}s", "refreshTokens": refresh}


def policy(p: Params) -> Manifest | None:
    """Where no router is in front, everybody calls the pod itself."""
    kind = p.published("OAuthServer").type
    if kind not in ("NodePort", "LoadBalancer"):
        return None
    spec = {
        "podSelector": {"matchLabels": {"app": COMPONENT}},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
    }
    return obj(p, "networking.k8s.io/v1", "NetworkPolicy", f"{kind.lower()}-oauth", {"spec": spec})


def asks_outside(providers: Providers) -> bool:
    """Whether a provider is asked by HTTP; directories have a protocol of their own, which no proxy of HTTP speaks."""
    return any(one["type"] != "ldap" for one in providers.connectors)


def deployment(p: Params, config_hash: str, *, outside: bool = False) -> Manifest:
    """`outside`: it asks providers by HTTP, through the cluster's proxy where there is one."""
    main = container(
        "dex",
        p.image(LOGIN_IMAGE),
        ["dex", "serve", f"{CONFIG_DIR}/{FILE}"],
        resources=requests(p, COMPONENT, "dex", "5m", "40Mi"),
        ports={"https": PORT, "metrics": METRICS_PORT},
        mounts={"config": CONFIG_DIR, "users": USERS_DIR, "tls": TLS_DIR},
        env=go_environment(p)
        # A dollar sign in somebody's secret is one. A provider that does not answer must not keep others out.
        | {"DEX_EXPAND_ENV": "false", "DEX_CONTINUE_ON_CONNECTOR_FAILURE": "true"}
        | (outside_proxy.environment(p) if outside else {}),
        startupProbe=http_probe("/healthz/ready", "metrics", scheme="HTTP", failures=300),
        readinessProbe=http_probe("/healthz/ready", "metrics", scheme="HTTP", period=10, timeout=5),
        livenessProbe=http_probe("/healthz/live", "metrics", scheme="HTTP", period=60, timeout=15, failures=5),
    )
    volumes = [secret_volume("config", CONFIG), secret_volume("users", USERS), secret_volume("tls", LEAF)]
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, COMPONENT)
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        # Two would each know half of the logins.
        "strategy": {"type": "Recreate"},
        "template": template(p, Pod(COMPONENT, [main], volumes, priority, config_hash)),
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {names.LABEL_MANAGED_BY: MANAGER})
