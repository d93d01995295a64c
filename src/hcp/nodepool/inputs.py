"""Reading what a node document needs from the hosted namespace and the management cluster."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults
from hcp.api import spec as hosted
from hcp.api.names import (
    ANNOTATION_HAPROXY_IMAGE,
    CA_BUNDLE_KEY,
    KUBECONFIG_KEY,
    PULL_SECRET_KEY,
    SSH_KEY_KEY,
    subdomain_problem,
)
from hcp.api.paths import at, block
from hcp.errors import HcpError
from hcp.ignition.apiproxy import ApiProxy
from hcp.kube.resources import CONFIGMAPS, SECRETS
from hcp.nodepool.scope import LOOK_AGAIN, HostedInputs, ReleaseFacts, Scope
from hcp.nodepool.watches import Watches
from hcp.pki import readable_certificates
from hcp.runtime import Waiting


async def hosted_inputs(scope: Scope) -> HostedInputs:
    """Read them; waits where the control plane has not made them yet."""
    watches, spec, home = scope.tools.watches, scope.cluster_spec, scope.namespace
    authorities = await registry_authorities(watches)
    kubeconfig, kubelet_ca, pull, ssh, bundle, of_proxy, own = await asyncio.gather(
        watches.of_control_plane(SECRETS, "bootstrap-kubeconfig", scope.hosted),
        watches.of_control_plane(CONFIGMAPS, "kubelet-client-ca", scope.hosted),
        watches.named(SECRETS, home, spec.get("pullSecret")),
        watches.named(SECRETS, home, spec.get("sshKey")),
        watches.named(CONFIGMAPS, home, spec.get("additionalTrustBundle")),
        watches.named(CONFIGMAPS, home, at(spec, "configuration.proxy.trustedCA")),
        watches.named(CONFIGMAPS, home, at(spec, "configuration.image.additionalTrustedCA")),
    )
    found = HostedInputs(
        bootstrap_kubeconfig=_decoded(kubeconfig, KUBECONFIG_KEY),
        kubelet_client_ca=_text(kubelet_ca, "ca.crt"),
        pull_secret=_decoded(pull, PULL_SECRET_KEY),
        ssh_key=_decoded(ssh, SSH_KEY_KEY),
        trust_bundle=_text(bundle, CA_BUNDLE_KEY),
        proxy_authority=_readable(_text(of_proxy, CA_BUNDLE_KEY)),
        # The owner of the cluster knows better whom its nodes trust.
        registry_authorities=authorities | usable_authorities(own),
    )
    wanted = at(spec, "configuration.proxy.trustedCA.name")
    if wanted and not found.proxy_authority:
        raise Waiting(
            f"configuration.proxy.trustedCA: there is no ConfigMap {wanted!r} with key {CA_BUNDLE_KEY!r}",
            again=LOOK_AGAIN,
        )
    if not found.bootstrap_kubeconfig or not found.kubelet_client_ca:
        raise Waiting("the hosted control plane has no bootstrap kubeconfig yet", again=LOOK_AGAIN)
    return found


async def registry_authorities(watches: Watches) -> dict[str, str]:
    """Registries the management cluster trusts by a CA of its own; nodes pull the same images and need it too.

    That they cannot be read is an error: nodes without them would be made, and could not pull.
    """
    return _by_host(await watches.registry_authorities())


def usable_authorities(found: Mapping[str, Any] | None) -> dict[str, str]:
    """Those of a tenant, by registry: they become names of folders, and containerd refuses what it cannot read."""
    given = _by_host(found)
    return {
        host: pem
        for host, pem in given.items()
        if not subdomain_problem(host.partition(":")[0]) and readable_certificates(pem.encode())
    }


def _by_host(found: Mapping[str, Any] | None) -> dict[str, str]:
    """Two dots in a key stand for the colon before a port, which no key may have."""
    return {host.replace("..", ":"): str(pem) for host, pem in block(found, "data").items()}


def api_proxy(scope: Scope, release: ReleaseFacts) -> ApiProxy:
    """How nodes of this cluster reach the hosted API."""
    found = block(scope.cluster, "status.controlPlaneEndpoint")
    if not found.get("host"):
        raise Waiting("the hosted API has no published address yet", again=LOOK_AGAIN)
    image = scope.pool_annotations.get(ANNOTATION_HAPROXY_IMAGE) or component(release, "haproxy", "haproxy-router")
    host, port = str(found["host"]), int(found.get("port") or defaults.API_PORT)
    by_name = scope.ctx.named_route_port if hosted.publishing(scope.cluster_spec, "APIServer") == "Route" else 0
    return ApiProxy(
        advertise_address=hosted.advertise_address(scope.cluster_spec),
        advertise_port=hosted.api_port(scope.cluster_spec),
        api_host=host,
        api_port=by_name or port,
        image=image,
        named=host if by_name else "",
    )


def component(release: ReleaseFacts, *names: str) -> str:
    """The first of these components the release carries."""
    for name in names:
        if name in release.components:
            return release.components[name]
    raise HcpError(f"the release {release.version} carries none of the images {', '.join(names)}")


def _decoded(secret: Mapping[str, Any] | None, key: str) -> str:
    return base64.b64decode(block(secret, "data").get(key, "")).decode()


def _readable(pem: str) -> str:
    return pem if readable_certificates(pem.encode()) else ""


def _text(config_map: Mapping[str, Any] | None, key: str) -> str:
    return str(block(config_map, "data").get(key, ""))
