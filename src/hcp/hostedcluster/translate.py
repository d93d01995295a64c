"""From a HostedCluster to the parameters of its control plane. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults, names
from hcp.api import spec as hosted
from hcp.api.paths import at, block
from hcp.controlplane import authentication, services
from hcp.controlplane.params import Params, Publishing
from hcp.guest.own_network import own_network

SERVICES = {
    "APIServer": names.API_SERVICE,
    "Konnectivity": names.KONNECTIVITY_SERVICE,
    "OAuthServer": names.OAUTH_ROUTE,
}


def publishing(spec: Mapping[str, Any], namespace: str, apps_domain: str) -> dict[str, Publishing]:
    """How each service is published; a Route without a name gets ours."""
    result = {}
    for entry in spec.get("services") or []:
        service, strategy = entry["service"], entry.get("servicePublishingStrategy") or {}
        kind = strategy.get("type", "Route")
        port = strategy.get("nodePort") or {}
        block = strategy.get("loadBalancer" if kind == "LoadBalancer" else "route") or {}
        hostname = block.get("hostname") or ""
        if kind == "Route" and not hostname and apps_domain and service in SERVICES:
            hostname = services.route_host(SERVICES[service], namespace, apps_domain)
        result[service] = Publishing(service, kind, hostname, port.get("address") or "", int(port.get("port") or 0))
    return result


# Kubernetes cuts an IPv6 network into at most 2 to this power parts.
_SIX_PARTS = 16


def host_prefixes(spec: Mapping[str, Any]) -> tuple[int, ...]:
    """How much of each pod network a node gets."""
    asked = {entry.get("cidr"): entry.get("hostPrefix") for entry in at(spec, "networking.clusterNetwork", [])}
    return tuple(int(asked.get(cidr) or _usual_prefix(cidr)) for cidr in hosted.cluster_networks(spec))


def _usual_prefix(cidr: str) -> int:
    """Valid for small networks and for very large ones too."""
    network = ipaddress.ip_network(cidr, strict=False)
    if network.version == 6:
        usual = 64 if network.prefixlen < 64 else network.prefixlen + 8
        return min(usual, network.prefixlen + _SIX_PARTS, 128)
    return max(23, min(network.prefixlen + 2, 28)) if network.prefixlen < 28 else network.prefixlen


def params(
    cluster: Mapping[str, Any], *, apps_domain: str = "", uid: int | None = None, owner: Mapping[str, Any] | None = None
) -> Params:
    """Everything of the spec that decides how the control plane looks; release and addresses are added later."""
    spec, meta = cluster["spec"], cluster["metadata"]
    namespace = names.control_plane_namespace(meta["namespace"], meta["name"])
    network = spec.get("networking") or {}
    volume = block(spec, "etcd.managed.storage.persistentVolume")
    platform = spec.get("platform") or {}
    return Params(
        name=meta["name"],
        cluster_namespace=meta["namespace"],
        namespace=namespace,
        infra_id=spec.get("infraID") or "",
        cluster_id=spec.get("clusterID") or "",
        cluster_uid=meta.get("uid") or "",
        uid=uid,
        vms_inside=platform.get("type") == "KubeVirt" and not at(platform, "kubevirt.credentials"),
        highly_available=spec.get("controllerAvailabilityPolicy") == "HighlyAvailable",
        release_image=(spec.get("controlPlaneRelease") or spec["release"])["image"],
        cluster_networks=tuple(hosted.cluster_networks(spec)),
        host_prefixes=host_prefixes(spec),
        service_networks=tuple(hosted.service_networks(spec)),
        advertise_address=hosted.advertise_address(spec),
        api_port=hosted.api_port(spec),
        allowed_cidrs=tuple(at(spec, "networking.apiServer.allowedCIDRBlocks", ())),
        node_port_range=at(spec, "configuration.network.serviceNodePortRange", Params.node_port_range),
        issuer_url=spec.get("issuerURL") or "https://kubernetes.default.svc",
        # The release's own network needs a range per node; with another one the user decides.
        allocate_node_cidrs=own_network(spec) or network.get("allocateNodeCIDRs") == "Enabled",
        publishing=publishing(spec, namespace, apps_domain),
        api_dns_name=spec.get("kubeAPIServerDNSName") or "",
        etcd_size=str(volume.get("size") or defaults.ETCD_SIZE),
        etcd_storage_class=volume.get("storageClassName") or "",
        etcd_snapshot_url=next(iter(at(spec, "etcd.managed.storage.restoreSnapshotURL") or ()), ""),
        foreign_etcd=at(spec, "etcd.unmanaged.endpoint") or "",
        annotations=dict(meta.get("annotations") or {}),
        node_selector=dict(spec.get("nodeSelector") or {}),
        tolerations=tuple(spec.get("tolerations") or ()),
        labels={k: v for k, v in (spec.get("labels") or {}).items() if not names.steers(k)},
        owner=owner,
        audit_webhook=bool(at(spec, "auditWebhook.name")),
        own_issuer=authentication.is_direct(spec),
        proxy=block(spec, "configuration.proxy"),
        api_config=block(spec, "configuration.apiServer"),
        scheduler_config=block(spec, "configuration.scheduler"),
    )


def owner_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An owner reference to this object."""
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
