"""Reading what a node document needs from the hosted namespace and the management cluster."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults
from hcp.api import spec as hosted
from hcp.api.names import ANNOTATION_HAPROXY_IMAGE, CA_BUNDLE_KEY, KUBECONFIG_KEY, PULL_SECRET_KEY, SSH_KEY_KEY
from hcp.api.paths import block
from hcp.errors import HcpError
from hcp.ignition.apiproxy import ApiProxy
from hcp.kube.resources import CONFIGMAPS, SECRETS
from hcp.nodepool.scope import LOOK_AGAIN, HostedInputs, ReleaseFacts, Scope
from hcp.nodepool.watches import Watches
from hcp.runtime import Waiting


async def hosted_inputs(scope: Scope) -> HostedInputs:
    """Read them; waits where the control plane has not made them yet."""
    watches, spec, home = scope.tools.watches, scope.cluster_spec, scope.namespace
    kubeconfig, kubelet_ca, pull, ssh, bundle, authorities = await asyncio.gather(
        watches.of_control_plane(SECRETS, "bootstrap-kubeconfig", scope.hosted),
        watches.of_control_plane(CONFIGMAPS, "kubelet-client-ca", scope.hosted),
        watches.named(SECRETS, home, spec.get("pullSecret")),
        watches.named(SECRETS, home, spec.get("sshKey")),
        watches.named(CONFIGMAPS, home, spec.get("additionalTrustBundle")),
        registry_authorities(watches),
    )
    found = HostedInputs(
        bootstrap_kubeconfig=_decoded(kubeconfig, KUBECONFIG_KEY),
        kubelet_client_ca=_text(kubelet_ca, "ca.crt"),
        pull_secret=_decoded(pull, PULL_SECRET_KEY),
        ssh_key=_decoded(ssh, SSH_KEY_KEY),
        trust_bundle=_text(bundle, CA_BUNDLE_KEY),
        registry_authorities=authorities,
    )
    if not found.bootstrap_kubeconfig or not found.kubelet_client_ca:
        raise Waiting("the hosted control plane has no bootstrap kubeconfig yet", again=LOOK_AGAIN)
    return found


async def registry_authorities(watches: Watches) -> dict[str, str]:
    """Registries the management cluster trusts by a CA of its own; nodes pull the same images and need it too.

    That they cannot be read is an error: nodes without them would be made, and could not pull.
    """
    found = await watches.registry_authorities()
    return {host.replace("..", ":"): pem for host, pem in block(found, "data").items()}


def api_proxy(scope: Scope, release: ReleaseFacts) -> ApiProxy:
    """How nodes of this cluster reach the hosted API."""
    found = block(scope.cluster, "status.controlPlaneEndpoint")
    if not found.get("host"):
        raise Waiting("the hosted API has no published address yet", again=LOOK_AGAIN)
    image = scope.pool_annotations.get(ANNOTATION_HAPROXY_IMAGE) or component(release, "haproxy", "haproxy-router")
    return ApiProxy(
        advertise_address=hosted.advertise_address(scope.cluster_spec),
        advertise_port=hosted.api_port(scope.cluster_spec),
        api_host=str(found["host"]),
        api_port=int(found.get("port") or defaults.API_PORT),
        image=image,
    )


def component(release: ReleaseFacts, *names: str) -> str:
    """The first of these components the release carries."""
    for name in names:
        if name in release.components:
            return release.components[name]
    raise HcpError(f"the release {release.version} carries none of the images {', '.join(names)}")


def _decoded(secret: Mapping[str, Any] | None, key: str) -> str:
    return base64.b64decode(block(secret, "data").get(key, "")).decode()


def _text(config_map: Mapping[str, Any] | None, key: str) -> str:
    return str(block(config_map, "data").get(key, ""))
