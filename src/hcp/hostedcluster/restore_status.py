"""What a HostedCluster says of the snapshot and the backup it was made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.hostedcluster.observed import Observed
from hcp.runtime.conditions import is_true
from hcp.runtime.workloads import quorum

Verdict = tuple[bool | str, str, str]


def verdicts(cluster: Mapping[str, Any], seen: Observed) -> dict[str, Verdict]:
    """Nothing for a cluster that was made new."""
    notes, known = annotations_of(cluster), at(cluster, "status.conditions")
    sent = names.ANNOTATION_RESTORE_SNAPSHOT in notes
    found: dict[str, Verdict] = {}
    if sent or at(cluster, "spec.etcd.managed.storage.restoreSnapshotURL"):
        found[c.ETCD_SNAPSHOT_RESTORED] = _snapshot(seen, sent=sent, done=is_true(known, c.ETCD_SNAPSHOT_RESTORED))
    if names.ANNOTATION_RESTORED_FROM_BACKUP in notes:
        done = is_true(known, c.RESTORED_FROM_BACKUP) or is_true(known, c.AVAILABLE)
        found[c.RESTORED_FROM_BACKUP] = (
            (True, c.AS_EXPECTED, "The cluster was restored and has been available since")
            if done
            else (False, c.RESTORE_IN_PROGRESS, "The restored cluster has not been available yet")
        )
    return found


def _snapshot(seen: Observed, *, sent: bool, done: bool) -> Verdict:
    """etcd starts only after the container that restores has ended well: its first quorum proves it."""
    if done or quorum(seen.etcd, seen.etcd_voters):
        return True, c.AS_EXPECTED, "etcd started from the snapshot"
    if seen.restore_problem:
        return False, c.INVALID_SNAPSHOT_URL, f"etcd is not started: {seen.restore_problem}"
    if sent:
        message = "etcd waits for the snapshot that hcp restore sends; if it has stopped, run it again"
    else:
        message = "etcd fetches its snapshot; container restore-snapshot of its pods says how far it is"
    return False, c.WAITING_FOR_SNAPSHOT, message
