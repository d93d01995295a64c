"""What is kept in memory of nodes and their requests inside guests: what is read here, and only so many."""

from __future__ import annotations

from typing import Any

from hcp.api.names import MARK_LABELS_SYNCED, MARK_OUT_OF_SERVICE
from hcp.api.paths import annotations_of, at
from hcp.kubevirt import lost
from hcp.kubevirt.slim import only, reduced

Object = dict[str, Any]
MOST_NODES = 2_000
MOST_REQUESTS = 1_000
MOST_CATALOGS = 1_000
# Whether there is any is all that is asked.
MOST_POLICIES = 100


def node(obj: Object) -> Object:
    """Nodes carry long lists of images and volumes."""
    kept = only(annotations_of(obj), (MARK_LABELS_SYNCED, MARK_OUT_OF_SERVICE))
    return reduced(
        obj,
        kept,
        spec=only(obj.get("spec"), ("taints", "providerID", "unschedulable")),
        status={
            **only(obj.get("status"), ("conditions", "addresses")),
            "nodeInfo": only(at(obj, "status.nodeInfo"), ("kubeletVersion",)),
            lost.HEARD: lost.heard(obj),
        },
    )


def head(obj: Object) -> Object:
    """That there is one, and whose it is."""
    return reduced(obj, {})


def request(obj: Object) -> Object:
    """A request that has its answer is kept by name only."""
    status = only(obj.get("status"), ("conditions",))
    spec = only(obj.get("spec"), ("signerName",)) if status.get("conditions") else dict(obj.get("spec") or {})
    return reduced(obj, {}, spec=spec, status=status)
