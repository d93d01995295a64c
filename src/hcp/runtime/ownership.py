"""Whose a hosted namespace is.

Its name is `<namespace>-<name>`, and people choose both parts: `kube` and `system` meet a namespace that runs the
cluster, `a-b` and `c` meet that of `a` and `b-c`. So the name proves nothing. A namespace is a cluster's when it
carries the UID of that HostedCluster, which nobody can choose; everything else is left exactly as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCONTROLPLANES, NAMESPACES

Object = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """What was found under the name of a cluster's hosted namespace."""

    namespace: Object | None
    # It is this cluster's to change and to delete.
    ours: bool
    # Why it is not, for the user; nothing where there is no namespace yet.
    problem: str = ""

    @property
    def foreign(self) -> bool:
        return self.namespace is not None and not self.ours


def belongs(namespace: Mapping[str, Any] | None, cluster: Mapping[str, Any]) -> bool:
    """Whether this namespace was made for exactly this HostedCluster, not for a namesake."""
    uid = cluster["metadata"].get("uid")
    return bool(uid) and mark(namespace) == (_key(cluster), uid)


def mark(namespace: Mapping[str, Any] | None) -> tuple[str, str]:
    """The cluster a namespace says it was made for: `namespace/name` and UID, empty where it does not say."""
    annotations = ((namespace or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(names.ANNOTATION_CLUSTER, ""), annotations.get(names.ANNOTATION_CLUSTER_UID, "")


def cluster_of(namespace: Mapping[str, Any]) -> Iterable[str]:
    """From a hosted namespace to the queue key of its HostedCluster, for `Controller.watch`."""
    key, _ = mark(namespace)
    return (key,) if key else ()


async def look(client: Client, cluster: Mapping[str, Any]) -> Claim:
    """Ask the server: a cache may show a namespace that somebody else has replaced since."""
    meta = cluster["metadata"]
    live = await client.get_or_none(NAMESPACES, names.control_plane_namespace(meta["namespace"], meta["name"]))
    if live is None:
        return Claim(None, ours=False)
    if belongs(live, cluster) or await _of_an_older_operator(client, live, cluster):
        return Claim(live, ours=True)
    return Claim(live, ours=False, problem=_problem(live, cluster))


async def _of_an_older_operator(client: Client, live: Object, cluster: Mapping[str, Any]) -> bool:
    """Older operators wrote no UID, and took over any namespace they met.

    What they made themselves is younger than its HostedCluster and holds that cluster's HostedControlPlane.
    """
    if mark(live) != (_key(cluster), "") or str(live["metadata"]["creationTimestamp"]) < str(
        cluster["metadata"].get("creationTimestamp") or "~"
    ):
        return False
    plane = await client.get_or_none(HOSTEDCONTROLPLANES, cluster["metadata"]["name"], live["metadata"]["name"])
    cluster_id = cluster["spec"].get("clusterID")
    return plane is not None and bool(cluster_id) and plane["spec"].get("clusterID") == cluster_id


def _problem(live: Object, cluster: Mapping[str, Any]) -> str:
    name, (owner, uid) = live["metadata"]["name"], mark(live)
    begin = f"The control plane needs the namespace {name}, which "
    if owner == _key(cluster) and uid:
        return f"{begin}is left from an earlier HostedCluster {owner}: this cluster goes on once it is deleted"
    if owner and owner != _key(cluster):
        return f"{begin}belongs to HostedCluster {owner}: choose another name for this one"
    return (
        f"{begin}exists and was not made for this HostedCluster. It is left as it is: choose another name, or delete "
        "that namespace and this cluster goes on by itself"
    )


def _key(cluster: Mapping[str, Any]) -> str:
    return f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"
