"""The cluster-wide settings of a hosted cluster, as its HostedCluster has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api import spec as hosted
from hcp.api.addresses import in_url
from hcp.api.paths import at, block
from hcp.guest.objects import Manifest, obj
from hcp.guest.own_network import own_network
from hcp.guest.platform.operators import API_VERSION

NAME = "cluster"
OWN_NETWORK = "Flannel"


def manifests(cluster: Mapping[str, Any], told: Mapping[str, Any]) -> list[Manifest]:
    """`told` is the status of the HostedCluster. Some kinds have a status of their own, which is applied apart."""
    spec: Mapping[str, Any] = cluster["spec"]
    given: Mapping[str, Any] = spec.get("configuration") or {}
    proxy = dict(given.get("proxy") or {})
    shown = {name: proxy[name] for name in ("httpProxy", "httpsProxy", "noProxy") if proxy.get(name)}
    return [
        _made("APIServer", given.get("apiServer") or {}),
        _made("Image", given.get("image") or {}),
        _infrastructure(spec, told),
        _made("Ingress", {**(given.get("ingress") or {}), **_domain(cluster)}),
        _network(spec),
        _made("OAuth", given.get("oauth") or {}),
        _made("OperatorHub", given.get("operatorhub") or {}),
        _made("Proxy", proxy, shown),
    ]


def apps_domain(cluster: Mapping[str, Any]) -> str:
    """Below which the cluster's own Routes are; empty while it has no base domain."""
    spec, name = cluster["spec"], cluster["metadata"]["name"]
    dns = block(spec, "dns")
    base, prefix = str(dns.get("baseDomain") or ""), dns.get("baseDomainPrefix")
    if not base:
        return ""
    return ".".join(part for part in ("apps", name if prefix is None else str(prefix), base) if part)


def _domain(cluster: Mapping[str, Any]) -> Manifest:
    domain = apps_domain(cluster)
    return {"domain": domain} if domain else {}


def _infrastructure(spec: Mapping[str, Any], told: Mapping[str, Any]) -> Manifest:
    platform = str(at(spec, "platform.type") or names.PLATFORM_NONE)
    endpoint = told.get("controlPlaneEndpoint") or {}
    address, port = hosted.advertise_address(spec), hosted.api_port(spec)
    single = spec.get("infrastructureAvailabilityPolicy") != "HighlyAvailable"
    status = {
        "infrastructureName": str(spec.get("infraID") or ""),
        "platform": platform,
        "platformStatus": {"type": platform},
        "apiServerURL": _url(str(endpoint.get("host") or ""), endpoint.get("port")),
        "apiServerInternalURI": _url(address, port),
        "controlPlaneTopology": "External",
        "infrastructureTopology": "SingleReplica" if single else "HighlyAvailable",
    }
    return _made("Infrastructure", {"platformSpec": {"type": platform}}, status)


def _url(host: str, port: Any) -> str:
    return f"https://{in_url(host)}:{port}" if host else ""


def _network(spec: Mapping[str, Any]) -> Manifest:
    """Its kind has no status of its own to write: both halves are one object."""
    prefixes = {str(one.get("cidr")): one.get("hostPrefix") for one in at(spec, "networking.clusterNetwork") or ()}
    ranges: list[Manifest] = []
    for cidr in hosted.cluster_networks(spec):
        ranges.append({"cidr": cidr, **({"hostPrefix": prefixes[cidr]} if prefixes.get(cidr) else {})})
    body = {"clusterNetwork": ranges, "serviceNetwork": hosted.service_networks(spec)}
    asked = {"networkType": str(at(spec, "networking.networkType") or "")}
    if ports := at(spec, "configuration.network.serviceNodePortRange"):
        asked["serviceNodePortRange"] = str(ports)
    runs = {"networkType": OWN_NETWORK if own_network(spec) else asked["networkType"]}
    return _made("Network", {**body, **asked}, {**body, **runs})


def _made(kind: str, spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Manifest:
    body: Manifest = {"spec": dict(spec)}
    if status:
        body["status"] = dict(status)
    return obj(API_VERSION, kind, NAME, body)
