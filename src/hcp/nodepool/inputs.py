"""Reading what a node document needs from the hosted namespace and the management cluster."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import ANNOTATION_HAPROXY_IMAGE, CA_BUNDLE_KEY, KUBECONFIG_KEY, PULL_SECRET_KEY, SSH_KEY_KEY
from hcp.errors import HcpError
from hcp.ignition.apiproxy import ApiProxy
from hcp.kube import Client
from hcp.kube.errors import ApiError
from hcp.kube.resources import CONFIGMAPS, IMAGE_CONFIGS, SECRETS
from hcp.nodepool.scope import ReleaseFacts, Scope
from hcp.runtime import Waiting

_TRUST_NAMESPACE = "openshift-config"


@dataclass(frozen=True)
class HostedInputs:
    """Secrets and bundles of a hosted cluster that its nodes carry."""

    bootstrap_kubeconfig: str
    kubelet_client_ca: str
    pull_secret: str
    ssh_key: str
    trust_bundle: str
    registry_authorities: Mapping[str, str]


async def hosted_inputs(scope: Scope) -> HostedInputs:
    """Read them; waits where the control plane has not made them yet."""
    client, namespace, spec = scope.ctx.client, scope.hosted, scope.cluster_spec
    home = scope.namespace
    bootstrap, client_ca, pull, ssh, bundle, authorities = await asyncio.gather(
        _secret(client, namespace, "bootstrap-kubeconfig", KUBECONFIG_KEY),
        _config_map(client, namespace, "kubelet-client-ca", "ca.crt"),
        _secret(client, home, (spec.get("pullSecret") or {}).get("name"), PULL_SECRET_KEY),
        _secret(client, home, (spec.get("sshKey") or {}).get("name"), SSH_KEY_KEY),
        _config_map(client, home, (spec.get("additionalTrustBundle") or {}).get("name"), CA_BUNDLE_KEY),
        registry_authorities(client),
    )
    if not bootstrap or not client_ca:
        raise Waiting("WaitingForControlPlane", "the hosted control plane has no bootstrap kubeconfig yet")
    return HostedInputs(bootstrap, client_ca, pull, ssh, bundle, authorities)


async def registry_authorities(client: Client) -> dict[str, str]:
    """Registries the management cluster trusts by a CA of its own; nodes pull the same images and need it too."""
    try:
        config = await client.get_or_none(IMAGE_CONFIGS, "cluster")
        name = (((config or {}).get("spec") or {}).get("additionalTrustedCA") or {}).get("name")
        found = await client.get_or_none(CONFIGMAPS, name, _TRUST_NAMESPACE) if name else None
    except ApiError:
        return {}
    return {host.replace("..", ":"): pem for host, pem in ((found or {}).get("data") or {}).items()}


def api_proxy(scope: Scope, release: ReleaseFacts) -> ApiProxy:
    """How nodes of this cluster reach the hosted API."""
    networking = scope.cluster_spec.get("networking") or {}
    server = networking.get("apiServer") or {}
    found = (scope.cluster.get("status") or {}).get("controlPlaneEndpoint") or {}
    if not found.get("host"):
        raise Waiting("WaitingForEndpoint", "the hosted API has no published address yet")
    image = scope.pool_annotations.get(ANNOTATION_HAPROXY_IMAGE) or component(release, "haproxy", "haproxy-router")
    return ApiProxy(
        advertise_address=server.get("advertiseAddress") or _default_advertise(networking),
        advertise_port=int(server.get("port") or 6443),
        api_host=str(found["host"]),
        api_port=int(found.get("port") or 6443),
        image=image,
    )


def component(release: ReleaseFacts, *names: str) -> str:
    """The first of these components the release carries."""
    for name in names:
        if name in release.components:
            return release.components[name]
    raise HcpError(f"the release {release.version} carries none of the images {', '.join(names)}")


def service_network(scope: Scope) -> list[str]:
    """The hosted cluster's service networks."""
    networks = (scope.cluster_spec.get("networking") or {}).get("serviceNetwork") or [{"cidr": "172.31.0.0/16"}]
    return [str(entry["cidr"]) for entry in networks]


def _default_advertise(networking: Mapping[str, Any]) -> str:
    first = ((networking.get("serviceNetwork") or [{}])[0]).get("cidr", "172.31.0.0/16")
    return "fd00::1" if ipaddress.ip_network(first, strict=False).version == 6 else "172.20.0.1"


async def _secret(client: Client, namespace: str, name: str | None, key: str) -> str:
    found = await client.get_or_none(SECRETS, name, namespace) if name else None
    return base64.b64decode(((found or {}).get("data") or {}).get(key, "")).decode()


async def _config_map(client: Client, namespace: str, name: str | None, key: str) -> str:
    found = await client.get_or_none(CONFIGMAPS, name, namespace) if name else None
    return str(((found or {}).get("data") or {}).get(key, ""))
