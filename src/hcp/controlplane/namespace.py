"""The hosted namespace."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.api import names
from hcp.controlplane.params import Manifest, Params

UID_ANNOTATION = f"{names.GROUP}/default-security-context-uid"
FIRST_UID = 1001


def free_uid(taken: Iterable[int]) -> int:
    """The smallest user id from 1001 on that no other hosted namespace has."""
    used = set(taken)
    uid = FIRST_UID
    while uid in used:
        uid += 1
    return uid


def namespace(p: Params) -> Manifest:
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
    annotations = {names.ANNOTATION_CLUSTER: p.key}
    if p.uid is not None:
        annotations[UID_ANNOTATION] = str(p.uid)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": p.namespace, "labels": labels, "annotations": annotations},
    }
