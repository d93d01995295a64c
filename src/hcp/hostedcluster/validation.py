"""What is wrong with a HostedCluster that no schema can tell. Pure: every problem at once, in plain words."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from hcp.api import names
from hcp.api import spec as hosted
from hcp.api.addresses import is_address, is_network
from hcp.api.defaults import NODE_PORTS
from hcp.api.paths import at
from hcp.controlplane import tls_profiles
from hcp.kube import bounded_json

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
PLATFORMS = ("KubeVirt", "None")
MAX_DEPTH = 64
MAX_INFRA_ID = 63


def unsupported(spec: Mapping[str, Any]) -> list[str]:
    """What this operator cannot do at all: nothing is made for such a cluster."""
    problems = []
    platform = at(spec, "platform.type")
    if platform not in PLATFORMS:
        problems.append(f"platform {platform} is not supported, only {' and '.join(PLATFORMS)}")
    if at(spec, "secretEncryption.type") == "kms":
        problems.append("secretEncryption.type kms is not supported, use aescbc")
    return problems


def problems(
    cluster: Mapping[str, Any], others: Iterable[Mapping[str, Any]] = (), *, has_routes: bool = True
) -> list[str]:
    """What must be changed before the cluster can be made."""
    spec, meta = cluster["spec"], cluster["metadata"]
    found = list(names.cluster_name_problems(meta["namespace"], meta["name"]))
    if bounded_json.depth(spec) > MAX_DEPTH:
        found.append(f"spec has a field that is nested deeper than {MAX_DEPTH} levels")
    if len(spec.get("infraID") or "") > MAX_INFRA_ID:
        found.append(f"infraID is longer than {MAX_INFRA_ID} characters: it cannot be the value of a label")
    found += _networks(spec)
    found += _services(spec, has_routes=has_routes)
    found += proxy_problems(spec)
    found += tls_profiles.problems(spec)
    found += _neighbours(cluster, others)
    return found


def _unusable(service: str, host: str) -> list[str]:
    """A host that no certificate can be made out to."""
    if not host or is_address(host):
        return []
    problem = names.subdomain_problem(host.lower())
    return [f"service {service}: {host[:100]!a} cannot be the name of a host, it {problem}"] if problem else []


def proxy_problems(spec: Mapping[str, Any]) -> list[str]:
    """Machines read these before anything else; one they do not understand keeps them from starting."""
    found, proxy = [], at(spec, "configuration.proxy") or {}
    for field in ("httpProxy", "httpsProxy"):
        value = str(proxy.get(field) or "")
        if value and not _is_proxy(value):
            found.append(
                f"configuration.proxy.{field} {value[:100]!a} is not a proxy: it looks like "
                "http://user:password@proxy.example.com:3128"
            )
    if any(char.isspace() or not char.isprintable() for char in str(proxy.get("noProxy") or "").replace(", ", ",")):
        found.append("configuration.proxy.noProxy is not a list of hosts and networks, joined by commas")
    return found


def _is_proxy(text: str) -> bool:
    if not text.isascii() or any(char.isspace() or not char.isprintable() for char in text):
        return False
    try:
        parsed = urlsplit(text)
        port = parsed.port
    except ValueError:
        return False
    return parsed.scheme in ("http", "https") and bool(parsed.hostname) and port != 0


def _parse(where: str, text: str, found: list[str]) -> Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError as exc:
        found.append(f"{where} {text} is not a network: {exc}")
        return None


def _networks(spec: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    networks: list[tuple[str, Network]] = []
    written = {
        "clusterNetwork": hosted.cluster_networks(spec),
        "serviceNetwork": hosted.service_networks(spec),
        "machineNetwork": hosted.cidrs(spec, "machineNetwork"),
    }
    for field, ranges in written.items():
        for text in ranges:
            if network := _parse(f"networking.{field}", text, found):
                networks.append((field, network))
    for (one, a), (two, b) in itertools.combinations(networks, 2):
        if a.version == b.version and a.overlaps(b):
            found.append(f"networking.{one} {a} overlaps networking.{two} {b}")
    found += _families(networks)
    first = dict(reversed(networks))
    if len({n.version for f, n in first.items() if f != "machineNetwork"}) > 1:
        found.append("networking.clusterNetwork and networking.serviceNetwork begin with different IP families")
    advertise = at(spec, "networking.apiServer.advertiseAddress")
    if advertise:
        try:
            address = ipaddress.ip_address(advertise)
            if "serviceNetwork" in first and address.version != first["serviceNetwork"].version:
                found.append(
                    f"networking.apiServer.advertiseAddress {advertise} is not of the IP family that "
                    "networking.serviceNetwork begins with"
                )
            found += [
                f"networking.apiServer.advertiseAddress {advertise} lies in networking.{field} {network}"
                for field, network in networks
                if address.version == network.version and address in network
            ]
        except ValueError:
            found.append(f"networking.apiServer.advertiseAddress {advertise} is not an IP address")
    return found


def _families(networks: list[tuple[str, Network]]) -> list[str]:
    """Two ranges are one of each family, and Services have none that pods lack."""
    families = {
        field: [network.version for one, network in networks if one == field]
        for field in ("clusterNetwork", "serviceNetwork")
    }
    found = [
        f"networking.{field} has two ranges of IPv{versions[0]}: two are possible as one of each IP family"
        for field, versions in families.items()
        if len(versions) != len(set(versions))
    ]
    lacking = set(families["serviceNetwork"]) - set(families["clusterNetwork"])
    if len(families["serviceNetwork"]) > 1 and lacking:
        found.append(f"networking.serviceNetwork has IPv{lacking.pop()}, which networking.clusterNetwork lacks")
    return found


def _services(spec: Mapping[str, Any], *, has_routes: bool) -> list[str]:
    found: list[str] = []
    seen: dict[str, str] = {}
    service_networks = [ipaddress.ip_network(c) for c in hosted.cidrs(spec, "serviceNetwork") if is_network(c)]
    for entry in spec.get("services") or []:
        service, strategy = entry["service"], entry.get("servicePublishingStrategy") or {}
        kind = strategy.get("type")
        hostname = ((strategy.get("route") or {}) | (strategy.get("loadBalancer") or {})).get("hostname")
        found += _unusable(service, hostname or at(strategy, "nodePort.address") or "")
        if hostname and hostname in seen:
            found.append(f"services {seen[hostname]} and {service} have the same host name {hostname}")
        seen[hostname or service] = service
        if kind == "Route" and not has_routes and service in ("APIServer", "Konnectivity"):
            found.append(
                f"service {service} is published by a Route, but this management cluster has no Routes: "
                "install the router (hcp install) or choose LoadBalancer or NodePort"
            )
        if kind == "NodePort":
            found += _node_port(service, strategy.get("nodePort") or {}, service_networks)
    return found


def _node_port(service: str, block: Mapping[str, Any], service_networks: Iterable[Network]) -> list[str]:
    found = []
    port, address = int(block.get("port") or 0), block.get("address") or ""
    if port and not NODE_PORTS[0] <= port <= NODE_PORTS[1]:
        found.append(f"service {service}: node port {port} is not between {NODE_PORTS[0]} and {NODE_PORTS[1]}")
    if not address:
        found.append(f"service {service} is published by NodePort without an address")
    elif is_address(address) and any(ipaddress.ip_address(address) in n for n in service_networks):
        found.append(f"service {service}: address {address} lies in networking.serviceNetwork")
    return found


def _neighbours(cluster: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """The older cluster keeps what two of them claim."""
    meta = cluster["metadata"]
    mine = names.control_plane_namespace(meta["namespace"], meta["name"])
    infra_id, mine_etcd = cluster["spec"].get("infraID"), _foreign_etcd(cluster["spec"])
    found = []
    for other in others:
        theirs = other["metadata"]
        if theirs.get("uid") == meta.get("uid") or _age(other) > _age(cluster):
            continue
        key = f"{theirs['namespace']}/{theirs['name']}"
        if names.control_plane_namespace(theirs["namespace"], theirs["name"]) == mine:
            found.append(f"the control plane namespace {mine} belongs to HostedCluster {key}: choose another name")
        if infra_id and other["spec"].get("infraID") == infra_id:
            found.append(f"infraID {infra_id} is already used by HostedCluster {key}: choose another one")
        if mine_etcd and _foreign_etcd(other["spec"]) == mine_etcd:
            found.append(f"etcd.unmanaged.endpoint {mine_etcd} holds the data of HostedCluster {key}: use another etcd")
    return found


def claims(cluster: Mapping[str, Any]) -> list[str]:
    """What no two clusters can have; see `_neighbours`."""
    meta, spec = cluster["metadata"], cluster.get("spec") or {}
    mine = [("namespace", names.control_plane_namespace(meta["namespace"], meta["name"]))]
    mine += [("infraID", str(spec.get("infraID") or "")), ("etcd", _foreign_etcd(spec))]
    return [f"{kind} {value}" for kind, value in mine if value]


def _foreign_etcd(spec: Mapping[str, Any]) -> str:
    endpoint = at(spec, "etcd.unmanaged.endpoint") or ""
    return str(endpoint).rstrip("/").lower()


def _age(cluster: Mapping[str, Any]) -> tuple[str, str]:
    meta = cluster["metadata"]
    return str(meta.get("creationTimestamp") or ""), str(meta.get("uid") or "")
