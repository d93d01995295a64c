"""Who came first: the order in which Routes are asked for their hosts.

A Route that was given a host keeps it: that is written in its status, with the time, and outlives the router. Only
what nobody holds is given by age. A user can choose a Route's name and edit its host at any time, but neither its
status nor when it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at

Route = Mapping[str, Any]
ROUTER_NAME = "default"
ADMITTED = "Admitted"


@dataclass(frozen=True, slots=True)
class Claim:
    """A host (or `*.domain`) that a Route was given, and since when."""

    name: str
    since: str


# By the Route's uid: what was given but may not be in the status yet.
Granted = Mapping[str, Claim]


def uid_of(route: Route) -> str:
    return str(route["metadata"].get("uid") or "")


def wildcard_of(host: str) -> str:
    return "*." + host.partition(".")[2]


def own_entry(route: Route) -> dict[str, Any]:
    """What this router wrote into the status."""
    entries = at(route, "status.ingress") or []
    return next((dict(one) for one in entries if one.get("routerName") == ROUTER_NAME), {})


def admitted_condition(entry: Mapping[str, Any]) -> dict[str, Any]:
    found = entry.get("conditions") or []
    return next((dict(one) for one in found if one.get("type") == ADMITTED), {})


def name_in(entry: Mapping[str, Any]) -> str:
    """The name an entry of the status is about."""
    host = str(entry.get("host") or "").lower()
    return wildcard_of(host) if entry.get("wildcardPolicy") == "Subdomain" else host


def held(route: Route, name: str, granted: Granted) -> Claim | None:
    """The claim of a Route on a name, if it has one: written in its status, or given since and not written yet."""
    given = granted.get(uid_of(route))
    if given is not None and given.name == name:
        return given
    entry = own_entry(route)
    condition = admitted_condition(entry)
    if condition.get("status") == "True" and name_in(entry) == name:
        return Claim(name, str(condition.get("lastTransitionTime") or "~"))
    return None


def place(route: Route, name: str, granted: Granted) -> tuple[Any, ...]:
    """Where a Route stands in the queue for a name; smaller comes first."""
    metadata = route["metadata"]
    claim = held(route, name, granted)
    made = str(metadata.get("creationTimestamp") or "~")
    if claim is not None:
        # Times have seconds: of two claims of one second the narrower was there first, or it would not be there.
        return 0, claim.since, name.startswith("*."), made, uid_of(route)
    # When an edited Route began to ask for this host is unknown: it stands behind those that always did.
    edited = int(metadata.get("generation") or 1) > 1
    return 1, edited, made, uid_of(route), metadata.get("namespace", ""), metadata["name"]
