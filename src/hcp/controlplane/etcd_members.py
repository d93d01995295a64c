"""ConfigMap etcd-members: with what a member of several starts when its volume is empty.

A member with data reads none of it. `state` is `new` only until all have founded the cluster together; afterwards
nobody without data is in `members` under its own name, which etcd refuses to start with, but the one that is being let
in. So a lost volume never becomes a second cluster, and never a voter without memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at
from hcp.controlplane import etcd
from hcp.controlplane.meta import config_map
from hcp.controlplane.params import Manifest, Params
from hcp.etcd.membership import MOST, Record
from hcp.runtime.workloads import quorum

Workload = Mapping[str, Any]
_NOBODY = "nobody"
_OTHER = "other"
# What etcd says when it may not start without data: as it is not named, or as the others know it already.
_EMPTY = ("couldn't find local name", "has already been bootstrapped")


def manifest(p: Params, record: Record, joiner: str = "") -> Manifest:
    """`joiner`: the address of the one that is let in."""
    data = {"replicas": str(record.replicas), "state": "new" if record.founding else "existing"}
    if record.joining is not None:
        data["joining"] = str(record.joining)
    if record.target is not None:
        data["target"] = str(record.target)
    if record.founding:
        members = [(f"etcd-{i}", etcd.member_url(p, i)) for i in range(record.replicas)]
    elif record.opened:
        own = f"etcd-{record.joining}"
        members = [(own if url == joiner else f"{_OTHER}-{n}", url) for n, url in enumerate(record.opened)]
    else:
        members = [(_NOBODY, etcd.member_url(p, 0))]
    data["members"] = ",".join(f"{name}={url}" for name, url in members)
    return config_map(p, etcd.MEMBERS_CONFIG, data)


def read(live: Mapping[str, Any] | None) -> Record | None:
    """What is written down; None where nothing is, or what nobody of us wrote."""
    data: Mapping[str, str] = (live or {}).get("data") or {}
    joining, target = data.get("joining"), data.get("target")
    try:
        members = dict(one.split("=", 1) for one in data.get("members", "").split(","))
        founding = data.get("state") == "new"
        opened = joining is not None and not founding and f"etcd-{joining}" in members
        return Record(
            replicas=int(data["replicas"]),
            founding=founding,
            joining=None if joining is None else int(joining),
            opened=tuple(sorted(members.values())) if opened else (),
            target=None if target is None else int(target),
        )
    except (KeyError, ValueError):
        return None


def first(p: Params, live: Workload | None) -> Record:
    """The record of a cluster that has none: it is new, had one member, or is of an operator that knew no records."""
    if live is None:
        return Record(p.replicas, founding=True)
    number = _by_arguments(live) or int(at(live, "spec.replicas") or 0) or p.replicas
    return Record(number, founding=number == p.replicas > 1 and not quorum(live) and not _joins(live))


def founded(record: Record, live: Workload | None) -> bool:
    """Whether the members of a new cluster have all started: from now on nobody founds one."""
    ready = int(at(live, "status.readyReplicas") or 0)
    return record.founding and ready >= record.replicas


def empty(pod: Mapping[str, Any]) -> bool:
    """Whether it says that its volume holds no data, and waits to be let in."""
    status: Mapping[str, Any] = next(
        (one for one in at(pod, "status.containerStatuses") or () if one.get("name") == etcd.COMPONENT), {}
    )
    if not any(f"$({etcd.MEMBERS})" in word for word in _command(pod.get("spec"))):
        return False  # of an operator that knew no records: it could not be let in
    if (status.get("state") or {}).get("running") is not None:
        return False
    ends = (at(status, "state.terminated.message"), at(status, "lastState.terminated.message"))
    latest = next((str(text) for text in ends if text), "")
    return any(words in latest for words in _EMPTY)


def index_of(pod: Mapping[str, Any]) -> int | None:
    """The number of the member in this pod."""
    found = re.fullmatch(r"etcd-(\d)", str(at(pod, "metadata.name")))
    return int(found[1]) if found and int(found[1]) < MOST else None


def claim(index: int) -> str:
    """The name of the claim for a member's volume."""
    return f"data-etcd-{index}"


def _command(pod: Mapping[str, Any] | None) -> list[str]:
    containers = (pod or {}).get("containers") or ()
    return next((list(c.get("command") or ()) for c in containers if c.get("name") == etcd.COMPONENT), [])


def _joins(live: Workload) -> bool:
    return any(f"$({etcd.MEMBERS})" in word for word in _command(at(live, "spec.template.spec")))


def _by_arguments(live: Workload) -> int:
    """How many members a template names that names them itself."""
    words = [w for w in _command(at(live, "spec.template.spec")) if w.startswith("--initial-cluster=")]
    return len(re.findall(r"etcd-\d+=", words[0])) if words else 0
