"""Which pod addresses a Route leads to: pure, from the Service and its EndpointSlices."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api.paths import at

Object = Mapping[str, Any]
# Addresses of one Route when several targets share it by weight.
SHARES = 64
# More than any Service has behind one name; what is written beyond it is left out.
MAX_ADDRESSES = 1024
# What a name of an object cannot hold: Routes made of other objects never meet those of users.
SEPARATOR = "~"
# What a Service says of ports that speak HTTP/2 without TLS.
HTTP2 = ("kubernetes.io/h2c", "h2c")


def _is_address(text: Any) -> bool:
    """Whether a pod can have it: EndpointSlices are written by users too."""
    try:
        found = ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return not (found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified)


def _port_names(service: Object | None, wanted: Any) -> set[str] | None:
    """Names of the Service ports that `targetPort` means; None when the Service says nothing about it."""
    if service is None:
        return None
    ports = at(service, "spec.ports") or []
    if wanted in (None, ""):
        return {ports[0].get("name") or ""} if ports else None
    found = {
        port.get("name") or ""
        for port in ports
        if wanted in (port.get("name"), port.get("targetPort")) or str(wanted) == str(port.get("targetPort"))
    }
    if not found:
        found = {port.get("name") or "" for port in ports if str(port.get("port")) == str(wanted)}
    return found or None


def _name_of(service: Object | None, listed: Any) -> Any:
    """The name of a Service's port that is given by name or number; a number is the Service's own, not the pod's."""
    for port in at(service, "spec.ports") or []:
        if listed in (port.get("name"), port.get("port")):
            return port.get("name") or port.get("targetPort") or listed
    return listed


def _slice_ports(one: Object, names: set[str] | None, wanted: Any) -> list[int]:
    ports = one.get("ports") or []
    if names is None:
        chosen = [
            port for port in ports if wanted in (None, "") or str(wanted) in (port.get("name"), str(port.get("port")))
        ]
    else:
        chosen = [port for port in ports if (port.get("name") or "") in names]
    numbers = (port.get("port") for port in chosen if port.get("protocol", "TCP") == "TCP")
    return [number for number in numbers if isinstance(number, int) and 0 < number < 65536]


def endpoints(service: Object | None, slices: Iterable[Object], target_port: Any) -> list[str]:
    """`address@port` of every ready endpoint, sorted so that the same pods give the same list."""
    names = _port_names(service, target_port)
    found: set[str] = set()
    for one in slices:
        if one.get("addressType") not in ("IPv4", "IPv6"):
            continue
        for port in _slice_ports(one, names, target_port):
            for endpoint in one.get("endpoints") or []:
                if at(endpoint, "conditions.ready") is False:
                    continue
                addresses = endpoint.get("addresses") or []
                found.update(f"{address}@{port}" for address in addresses if _is_address(address))
    return sorted(found)[:MAX_ADDRESSES]


def speaks_http2(route: Object, service: Callable[[str, str], Object | None]) -> bool:
    """Whether the Service says so of the port that the Route leads to."""
    spec = route.get("spec") or {}
    live = service(route["metadata"].get("namespace", ""), str(at(spec, "to.name") or ""))
    wanted, listed = at(spec, "port.targetPort"), at(spec, "port.servicePort", at(spec, "to.servicePort"))
    names = _port_names(live, wanted if listed is None else _name_of(live, listed)) or set()
    ports = at(live, "spec.ports") or []
    return any((port.get("name") or "") in names and port.get("appProtocol") in HTTP2 for port in ports)


def services_of(route: Object) -> set[str]:
    """The Services, as namespace/name, that a Route may lead to."""
    namespace, spec = route["metadata"].get("namespace", ""), route.get("spec") or {}
    made_here = SEPARATOR in str(route["metadata"].get("name") or "")
    targets = [spec.get("to") or {}, *(spec.get("alternateBackends") or [])]
    return {
        f"{one.get('namespace', namespace) if made_here else namespace}/{one['name']}"
        for one in targets
        if one.get("name")
    }


def of_route(
    route: Object,
    service: Callable[[str, str], Object | None],
    slices: Callable[[str, str], Iterable[Object]],
) -> list[str]:
    """The addresses of a Route; an address appears more often the larger its target's weight is."""
    namespace = route["metadata"].get("namespace", "")
    spec = route.get("spec") or {}
    port, listed = at(spec, "port.targetPort"), at(spec, "port.servicePort")
    # Whoever made it has asked whether that namespace permits it. No object of a user can have such a name.
    made_here = SEPARATOR in str(route["metadata"].get("name") or "")
    groups: list[tuple[int, list[str]]] = []
    for target in [spec.get("to") or {}, *(spec.get("alternateBackends") or [])]:
        name, weight = target.get("name"), target.get("weight")
        share = 100 if weight is None else int(weight)
        if not name or share <= 0:
            continue
        where = target.get("namespace", namespace) if made_here else namespace
        wanted = target.get("servicePort", listed) if made_here else listed
        live = service(where, name)
        found = endpoints(live, slices(where, name), port if wanted is None else _name_of(live, wanted))
        if found:
            groups.append((share, found))
    if len(groups) == 1:
        return groups[0][1]
    total = sum(share for share, _ in groups)
    spread: list[str] = []
    for share, found in groups:
        places = max(len(found), round(SHARES * share / total))
        spread += [found[place % len(found)] for place in range(places)]
    return spread
