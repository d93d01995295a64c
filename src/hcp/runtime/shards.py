"""Which part of a fleet a process works on, and how parts are shared out fairly.

A hosted cluster is a shard's by the name of its hosted namespace, which everything about it can tell: what lies in it,
what is labelled with it, and what it is made of. Two clusters whose names make the same namespace are so seen together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hcp.api import names
from hcp.api.paths import at

Object = dict[str, Any]
Keep = Callable[[Object], bool]


# Who holds it works on shard 0, or on everything where nothing is shared.
LEASE = "hypershift-operator-leader-elect"
_SHARD = re.compile(rf"{LEASE}(?:-([0-9]+))?")
# Each is a Lease that is renewed every few seconds, and a set of caches.
MOST_SHARDS = 32


def shards_problem(count: int) -> str:
    """What is wrong with a number of shards, for a person; empty where nothing is."""
    return "" if 1 <= count <= MOST_SHARDS else f"it is 1 (nothing is shared) to {MOST_SHARDS}"


@lru_cache(maxsize=16_384)
def shard_of(hosted: str, count: int) -> int:
    """The same everywhere and for ever: who counts otherwise would work on somebody else's clusters."""
    if count == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(hosted.encode(), digest_size=8).digest(), "big") % count


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `of` equal parts of all hosted clusters; without sharing, all of them."""

    number: int = 0
    of: int = 1

    @property
    def first(self) -> bool:
        """Whether what there is once per management cluster is kept here."""
        return self.number == 0

    @property
    def everything(self) -> bool:
        return self.of == 1

    def has(self, hosted: str) -> bool:
        """Whether the cluster with this hosted namespace is worked on here."""
        return shard_of(hosted, self.of) == self.number

    def filter(self, ns: str | None) -> Keep | None:
        """What is kept of a followed kind, in one namespace or in all; None where that is everything."""
        if self.everything:
            return None
        return self._keeps if ns is None else self._keeps_document

    def _keeps(self, obj: Object) -> bool:
        hosted = hosted_of(obj)
        return hosted is None or self.has(hosted)

    def _keeps_document(self, obj: Object) -> bool:
        """In a namespace that is not a cluster's, people's own things: nobody knows whom they concern."""
        hosted = _labels(obj).get(names.LABEL_DOCUMENT_OF)
        return hosted is None or self.has(str(hosted))


def hosted_of(obj: Mapping[str, Any]) -> str | None:
    """The hosted namespace of the cluster that an object of any kind is about; None where it is about all."""
    meta = obj.get("metadata") or {}
    kind, ns = obj.get("kind"), meta.get("namespace")
    if kind == "HostedCluster":
        return names.control_plane_namespace(str(ns), str(meta.get("name")))
    if kind == "NodePool":
        return names.control_plane_namespace(str(ns), str(at(dict(obj), "spec.clusterName") or ""))
    if kind == "Namespace":
        return str(meta.get("name"))
    labelled = _labels(obj).get(names.LABEL_CONTROL_PLANE_NAMESPACE)
    found = labelled or ns
    return str(found) if found else None


def _labels(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return (obj.get("metadata") or {}).get("labels") or {}


def claiming(cluster: Object) -> Object:
    """Of another process' cluster, what two cannot both have, and by which it is named."""
    spec, status = cluster.get("spec") or {}, cluster.get("status") or {}
    wanted = {"infraID": spec.get("infraID"), "etcd": spec.get("etcd"), "services": spec.get("services")}
    return {
        **{field: cluster[field] for field in ("apiVersion", "kind") if field in cluster},
        "metadata": _head(cluster, "namespace", "deletionTimestamp"),
        "spec": {field: value for field, value in wanted.items() if value is not None},
        "status": {field: status[field] for field in ("ignitionEndpoint",) if field in status},
    }


def numbered(namespace: Object) -> Object:
    """Of another process' hosted namespace, whose it is."""
    return {"kind": "Namespace", "metadata": _head(namespace, "annotations", "labels")}


def _head(obj: Object, *more: str) -> Object:
    fields = ("name", "uid", "resourceVersion", "creationTimestamp", *more)
    return {field: obj["metadata"][field] for field in fields if field in obj["metadata"]}


def fair(count: int, members: Iterable[str], holders: Mapping[int, str]) -> dict[int, str]:
    """Who shall hold which shard: as equally as possible, and moving as few as possible.

    All who see the same decide the same. A holder that is no member keeps nothing. Whoever must give some away keeps
    those with the lowest numbers.
    """
    there = sorted(set(members))
    if not there:
        return {}
    held: dict[str, list[int]] = {member: [] for member in there}
    for number in range(count):
        if holders.get(number) in held:
            held[holders[number]].append(number)
    base, more = divmod(count, len(there))
    # Those that hold most already may have the one that is left over.
    order = sorted(there, key=lambda member: (-len(held[member]), member))
    share = {member: base + (1 if place < more else 0) for place, member in enumerate(order)}
    plan = {number: member for member in there for number in held[member][: share[member]]}
    room = [member for member in order for _ in range(share[member] - len(held[member]))]
    left = [number for number in range(count) if number not in plan]
    return plan | dict(zip(left, room, strict=True))


def lease_name(number: int) -> str:
    return f"{LEASE}-{number}" if number else LEASE


def shard_number(name: str) -> int | None:
    """Which shard a Lease is for; None where it is for none."""
    found = _SHARD.fullmatch(name)
    return int(found[1] or 0) if found else None


def holder_of(lease: Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
