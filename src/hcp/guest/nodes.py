"""What is kept true on a guest Node: role label, pool label, the pool's labels and taints, and its provider id."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api.names import LABEL_NODEPOOL, MARK_LABELS_SYNCED

WORKER_ROLE = "node-role.kubernetes.io/worker"
# What we put on the node last time, so that labels and taints taken off the pool are taken off the node.
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"


def provider_id(machine_name: str) -> str:
    """The id by which Cluster API finds the Node of a Machine."""
    return f"kubevirt://{machine_name}"


def node_patch(
    node: Mapping[str, Any],
    node_pool: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, Any]],
    *,
    unmanaged: bool = False,
) -> dict[str, Any] | None:
    """The merge patch that makes a Node follow its pool; None when it already does.

    A machine that is not KubeVirt's (`unmanaged`) gets no provider id: that is for whoever made it to say.
    """
    metadata, spec = node["metadata"], node.get("spec") or {}
    wanted = {WORKER_ROLE: "", LABEL_NODEPOOL: node_pool, **labels}
    wanted_taints = [_clean(taint) for taint in taints]
    before = _synced(metadata)
    patch: dict[str, Any] = {}
    current = metadata.get("labels") or {}
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if current.get(key) != value}
    changed.update({key: None for key in before["labels"] if key not in wanted and key in current})
    record = json.dumps({"labels": sorted(labels), "taints": wanted_taints}, sort_keys=True)
    if changed:
        patch.setdefault("metadata", {})["labels"] = changed
    if (metadata.get("annotations") or {}).get(MARK_LABELS_SYNCED) != record:
        patch.setdefault("metadata", {})["annotations"] = {MARK_LABELS_SYNCED: record}
    all_taints = _taints(spec.get("taints") or [], before["taints"], wanted_taints)
    if all_taints != [dict(taint) for taint in spec.get("taints") or []]:
        patch.setdefault("spec", {})["taints"] = all_taints
    if not spec.get("providerID") and not unmanaged:
        patch.setdefault("spec", {})["providerID"] = provider_id(metadata["name"])
    return patch or None


def _synced(metadata: Mapping[str, Any]) -> dict[str, Any]:
    try:
        known = json.loads((metadata.get("annotations") or {}).get(MARK_LABELS_SYNCED, ""))
    except json.JSONDecodeError:
        known = None
    if not isinstance(known, dict):
        return {"labels": [], "taints": []}
    return {"labels": list(known.get("labels") or []), "taints": list(known.get("taints") or [])}


def _taints(
    present: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Taints of others stay; ours are exactly those wanted."""
    ours = {_key(taint) for taint in [*before, *wanted]}
    kept = [dict(taint) for taint in present if _key(taint) not in ours and taint.get("key") != _UNINITIALIZED]
    present_ours = {_key(taint): dict(taint) for taint in present}
    result = kept
    for taint in wanted:
        known = present_ours.get(_key(taint))
        same = known is not None and known.get("value", "") == taint.get("value", "")
        result.append(known if known is not None and same else dict(taint))
    return result


def _key(taint: Mapping[str, Any]) -> tuple[str, str]:
    return str(taint.get("key", "")), str(taint.get("effect", ""))


def _clean(taint: Mapping[str, Any]) -> dict[str, Any]:
    return {name: taint[name] for name in ("key", "value", "effect") if taint.get(name)}
