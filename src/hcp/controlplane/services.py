"""How the control plane is reached: Services and Routes, and the addresses that come of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults, names
from hcp.api.paths import at
from hcp.controlplane.meta import component_labels, obj
from hcp.controlplane.params import AGENT_PORT, Endpoint, Manifest, Params, Publishing

EXTERNAL_DNS = "external-dns.alpha.kubernetes.io/hostname"


def route_host(service: str, namespace: str, domain: str) -> str:
    """The host we give a Route, so that certificates are right the first time; a DNS label has at most 63 letters."""
    label = f"{service}-{namespace}"
    if len(label) > names.MAX_LABEL:
        label = f"{label[:54].rstrip('-')}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
    return f"{label}.{domain}"


def api_service(p: Params) -> Manifest:
    """In front of kube-apiserver, published by the strategy of service APIServer."""
    publishing = p.published("APIServer")
    port: Manifest = {"name": "client", "port": p.api_port, "protocol": "TCP", "targetPort": "client"}
    return published_service(p, names.API_SERVICE, publishing, port, allowed=p.allowed_cidrs)


def konnectivity_service(p: Params) -> Manifest:
    """Where the agents of the nodes call; the server is a container of the kube-apiserver pod."""
    port: Manifest = {"name": "agent", "port": AGENT_PORT, "protocol": "TCP", "targetPort": "agent"}
    return published_service(p, names.KONNECTIVITY_SERVICE, p.published("Konnectivity"), port)


def published_service(
    p: Params,
    name: str,
    publishing: Publishing,
    port: Manifest,
    *,
    allowed: tuple[str, ...] = (),
    component: str = "kube-apiserver",
) -> Manifest:
    """A Service in front of a component, as its strategy says."""
    labels = component_labels(p, component)
    annotations: dict[str, str] = {}
    spec: Manifest = {"selector": labels, "ports": [port], "type": "ClusterIP"}
    if publishing.type == "LoadBalancer":
        spec |= {"type": "LoadBalancer"}
        if allowed:
            spec["loadBalancerSourceRanges"] = list(allowed)
        if publishing.hostname:
            annotations[EXTERNAL_DNS] = publishing.hostname
    elif publishing.type == "NodePort":
        spec["type"] = "NodePort"
        if publishing.port:
            port["nodePort"] = publishing.port
    if spec["type"] == "ClusterIP" or p.has_six:
        spec["ipFamilyPolicy"] = "PreferDualStack"
    return obj(p, "v1", "Service", name, {"spec": spec}, labels={"app": name}, annotations=annotations)


def routes(p: Params) -> list[Manifest]:
    """One Route per service published so; the host is ours, or left to the router where we know no domain."""
    marks = {names.API_SERVICE: {names.MARK_SLEEPS_SINCE: p.sleeps_since}} if p.sleeps_since else {}
    return [
        route(p, p.published(service), name, name, port, marks.get(name, {}))
        for service, name, port in (
            ("APIServer", names.API_SERVICE, "client"),
            ("Konnectivity", names.KONNECTIVITY_SERVICE, "agent"),
        )
        if p.published(service).type == "Route"
    ]


def route(
    p: Params, publishing: Publishing, name: str, service: str, port: str, marks: Mapping[str, str] | None = None
) -> Manifest:
    """To a port of a Service, which ends TLS itself."""
    spec: Manifest = {
        "to": {"kind": "Service", "name": service, "weight": 100},
        "port": {"targetPort": port},
        "tls": {"termination": "passthrough", "insecureEdgeTerminationPolicy": "None"},
        "wildcardPolicy": "None",
    }
    if publishing.hostname:
        spec["host"] = publishing.hostname
    annotations = {**({EXTERNAL_DNS: publishing.hostname} if publishing.hostname else {}), **(marks or {})}
    return obj(p, "route.openshift.io/v1", "Route", name, {"spec": spec}, annotations=annotations)


def endpoint(
    publishing: Publishing, service: Mapping[str, Any] | None, route: Mapping[str, Any] | None, *, six: bool = False
) -> Endpoint | None:
    """The published address, from what is in the cluster; None while there is none.

    Of a load balancer with addresses of both families it is the one of the hosted cluster's first, `six` or not.
    """
    if publishing.type == "Route":
        host = publishing.hostname or at(route, "spec.host") or ""
        return Endpoint(host, names.ROUTE_PORT) if host else None
    if service is None:
        return None
    port = service["spec"]["ports"][0]
    if publishing.type == "NodePort":
        allocated = port.get("nodePort")
        return Endpoint(publishing.address, int(allocated)) if allocated and publishing.address else None
    ingress = at(service, "status.loadBalancer.ingress") or [{}]
    alike = (entry for entry in ingress if entry.get("hostname") or (":" in str(entry.get("ip") or "")) == six)
    first = next(alike, ingress[0])
    host = publishing.hostname or first.get("hostname") or first.get("ip") or ""
    # A configured name is of no use before something answers behind it, but it is already what certificates must say.
    return Endpoint(host, int(port["port"])) if host else None


def balancer_addresses(found: Endpoint | None, service: Mapping[str, Any] | None) -> tuple[str, ...]:
    """All addresses of a load balancer that is called by an address and not by a name."""
    if found is None or not found.is_ip:
        return ()
    ingress = at(service, "status.loadBalancer.ingress") or []
    return tuple(str(entry["ip"]) for entry in ingress if entry.get("ip"))


def waiting_for(publishing: Publishing) -> str:
    """What is missing while `endpoint` gives None, for the InfrastructureReady condition."""
    name = names.API_SERVICE if publishing.service == "APIServer" else names.KONNECTIVITY_SERVICE
    if publishing.type == "Route":
        return f"Route {name} has no host yet: no apps domain is known and no router has set one"
    if publishing.type == "NodePort":
        return f"Service {name} has no node port yet"
    return (
        f"Service {name} of type LoadBalancer has no address yet; if this stays, the management cluster has no "
        "load balancer: install one, or publish by NodePort or Route"
    )


def waiting_for_login(p: Params) -> str:
    """The same of the OAuth server."""
    name = names.OAUTH_SERVER
    if p.published("OAuthServer").type == "Route":
        return f"Route {names.OAUTH_ROUTE} has no host yet"
    return f"Service {name} has no published address yet"


def service_port(p: Params) -> int:
    """The port of the API inside the management cluster."""
    return p.api_port or defaults.API_PORT
