"""An etcd that starts from a snapshot: the container before etcd that fills an empty volume with it.

The snapshot is fetched from `restoreSnapshotURL`, or sent by `hcp restore`, which says so by annotation. The container
stays in the template: taking it away would roll etcd, and where there is data it ends at once.
"""

from __future__ import annotations

import re

from hcp.api import names
from hcp.controlplane import etcd
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import container, requests

CONTAINER = "restore-snapshot"
PROGRAM = "hcp.backup.filling"
RECEIVER = "hcp.backup.receiving"
_SHA256 = re.compile("[0-9a-f]{64}")


def asked(p: Params) -> bool:
    return bool(p.etcd_snapshot_url or names.ANNOTATION_RESTORE_SNAPSHOT in p.annotations)


def problem(p: Params, image: str) -> str:
    """Why a cluster that asks for it cannot be started from a snapshot; it is never started without."""
    if p.etcd_snapshot_url:
        if not p.etcd_snapshot_url.startswith("https://"):
            return (
                "restoreSnapshotURL: etcd's pod holds no credentials of an object store; "
                "give a signed https:// address of the snapshot"
            )
    elif not _SHA256.fullmatch(p.annotations[names.ANNOTATION_RESTORE_SNAPSHOT]):
        return f"annotation {names.ANNOTATION_RESTORE_SNAPSHOT} is no SHA-256 in hexadecimal digits"
    return "" if image else "the operator does not know its own image, which holds what restores snapshots"


def filler(p: Params, image: str) -> Manifest:
    """The first container of the pod."""
    members, state = etcd.beginning(p)
    words = [
        "--name=$(POD_NAME)",
        f"--initial-cluster={members}",
        f"--initial-cluster-token={p.cluster_id or p.infra_id}",
        f"--initial-advertise-peer-urls=https://$(POD_NAME).{etcd.DISCOVERY}.{p.namespace}.svc:2380",
        # Who comes later has a cluster to join, and must not bring the old data back.
        *([f"--initial-cluster-state={state}"] if state != "new" else []),
        *([f"--url={p.etcd_snapshot_url}"] if p.etcd_snapshot_url else []),
    ]
    return container(
        CONTAINER,
        image,
        ["python3", "-m", PROGRAM, *words],
        resources=requests(p, etcd.COMPONENT, CONTAINER, "6m", "64Mi"),
        mounts={"data": "/var/lib"},
        writable=["data"],
        env={"POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}}, **etcd.joining(p)},
    )
