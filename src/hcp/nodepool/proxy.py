"""The proxy of a hosted cluster (`configuration.proxy`), as its machines are told."""

from __future__ import annotations

from dataclasses import replace

from hcp.api import spec as hosted
from hcp.api.paths import at, block
from hcp.guest.own_network import pod_networks
from hcp.ignition.pointer import Proxy
from hcp.nodepool.scope import Scope


def cluster_proxy(scope: Scope) -> Proxy:
    """As it is written, for a machine that fetches its document."""
    found = block(scope.cluster, "spec.configuration.proxy")
    direct = tuple(part.strip() for part in str(found.get("noProxy") or "").split(",") if part.strip())
    authority = scope.inputs.proxy_authority if scope.inputs else ""
    return Proxy(found.get("httpProxy") or "", found.get("httpsProxy") or "", direct, authority)


def node_proxy(scope: Scope, authority: str) -> Proxy:
    """For what runs on a node: never for the cluster's own networks, nor for its API, which nodes reach directly."""
    spec, given = scope.cluster_spec, cluster_proxy(scope)
    networks = [*pod_networks(spec), *hosted.cluster_networks(spec), *hosted.service_networks(spec)]
    networks += hosted.cidrs(spec, "machineNetwork")
    ours = [hosted.advertise_address(spec), at(scope.cluster, "status.controlPlaneEndpoint.host", "")]
    direct = dict.fromkeys([*given.direct, *map(str, networks), *(host for host in ours if host)])
    return replace(given, direct=tuple(direct), authority=authority)
