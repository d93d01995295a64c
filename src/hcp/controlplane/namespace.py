"""The hosted namespace."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api import names
from hcp.controlplane.params import Manifest, Params

UID_ANNOTATION = f"{names.GROUP}/default-security-context-uid"
FIRST_UID = 1001


def free_uid(taken: Iterable[int], shard: int = 0, shards: int = 1) -> int:
    """The smallest user id from 1001 on that no other hosted namespace has.

    Processes that share a fleet give out different ones: each learns a moment late of what the others gave out.
    """
    used = set(taken)
    uid = FIRST_UID + shard
    while uid in used:
        uid += shards
    return uid


def owner_annotations(p: Params) -> dict[str, str]:
    """By which the namespace is known as this cluster's."""
    return {names.ANNOTATION_CLUSTER: p.key, names.ANNOTATION_CLUSTER_UID: p.cluster_uid}


def bare_namespace(p: Params) -> Manifest:
    """What is created, and never applied: applying would take over a namespace that somebody else has made."""
    metadata = {"name": p.namespace, "annotations": owner_annotations(p)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def namespace(p: Params, live_uid: str = "") -> Manifest:
    """The namespace as it should be. `live_uid`: the very object that was found to be ours; no namesake is changed."""
    # virt-launcher pods set no seccomp profile, so "restricted" would refuse the worker VMs; our own pods meet it.
    default = "baseline" if p.vms_inside else "restricted"
    enforce = p.annotations.get(names.ANNOTATION_POD_SECURITY) or default
    labels = {
        names.LABEL_CONTROL_PLANE_NAMESPACE: "true",
        "security.openshift.io/scc.podSecurityLabelSync": "false",
        "pod-security.kubernetes.io/enforce": enforce,
        "pod-security.kubernetes.io/audit": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    }
    annotations = owner_annotations(p)
    if p.uid is not None:
        annotations[UID_ANNOTATION] = str(p.uid)
    metadata: Manifest = {"name": p.namespace, "labels": labels, "annotations": annotations}
    if live_uid:
        metadata["uid"] = live_uid
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
