"""What specs say about networks and machines, with the values that hold where they say nothing. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from hcp.api import defaults, names
from hcp.api.paths import at

Spec = Mapping[str, Any]


def is_unmanaged(owner: Mapping[str, Any]) -> bool:
    """Whether the machines of this HostedCluster or NodePool are the user's own."""
    return bool(at(owner, "spec.platform.type") == names.PLATFORM_NONE)


def cidrs(spec: Spec, field: str) -> list[str]:
    """The ranges that are written down under ``networking``."""
    return [str(entry["cidr"]) for entry in at(spec, f"networking.{field}", []) if entry.get("cidr")]


def cluster_networks(spec: Spec) -> list[str]:
    return cidrs(spec, "clusterNetwork") or [defaults.CLUSTER_CIDR]


def service_networks(spec: Spec) -> list[str]:
    return cidrs(spec, "serviceNetwork") or [defaults.SERVICE_CIDR]


def advertise_address(spec: Spec) -> str:
    """Where pods of the guest reach the API."""
    v6 = ipaddress.ip_network(service_networks(spec)[0], strict=False).version == 6
    return str(
        at(spec, "networking.apiServer.advertiseAddress", defaults.ADVERTISE_V6 if v6 else defaults.ADVERTISE_V4)
    )


def api_port(spec: Spec) -> int:
    return int(at(spec, "networking.apiServer.port", defaults.API_PORT))


def publishing(spec: Spec, service: str) -> str:
    """How a service is published; those that are not named have a Route."""
    for entry in spec.get("services") or []:
        if entry.get("service") == service:
            return str(at(entry, "servicePublishingStrategy.type", "Route"))
    return "Route"
