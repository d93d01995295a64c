"""Whether the guest gets the release's own pod network: nodes and cluster must agree on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import spec as hosted
from hcp.api.paths import at

# OVNKubernetes is every CLI's default and means the release's own network here.
TYPES = ("OVNKubernetes", "OpenShiftSDN", "")


def own_network(spec: Mapping[str, Any]) -> bool:
    """True for a HostedCluster spec that does not leave the pod network to its owner."""
    return (at(spec, "networking.networkType") or "") in TYPES


def pod_networks(spec: Mapping[str, Any]) -> list[str]:
    """The ranges pods get addresses from, where the release's own network gives them."""
    return hosted.cluster_networks(spec) if own_network(spec) else []
