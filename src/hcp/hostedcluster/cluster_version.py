"""How the version of a hosted cluster is, in the words of OpenShift's ClusterVersion. Pure.

Also the HostedCluster's own conditions: the ClusterVersion inside the cluster says the same, and is never read, since
tenants can write there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.guest.platform.operators import Operator
from hcp.hostedcluster.cluster_operators import unwell
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.version import COMPLETED, completed_version
from hcp.runtime.conditions import Verdict, get_condition

# Of what can be told only after a look inside.
INSIDE = (
    c.CLUSTER_VERSION_AVAILABLE,
    c.CLUSTER_VERSION_PROGRESSING,
    c.CLUSTER_VERSION_SUCCEEDING,
    c.CLUSTER_VERSION_UPGRADEABLE,
)


def verdicts(
    cluster: Mapping[str, Any],
    seen: Observed,
    version: Mapping[str, Any],
    operators: Sequence[Operator],
    *,
    available: bool,
    blocked: str,
) -> dict[str, Verdict]:
    """`version` is `status.version` as this pass writes it; `available`: the control plane is there."""
    made = {c.CLUSTER_VERSION_RELEASE_ACCEPTED: _accepted(seen)}
    known = {kind: get_condition(at(cluster, "status.conditions"), kind) for kind in INSIDE}
    if seen.guest is None and all(known.values()) and not blocked:
        # Not looked at since this process started: what is known stays.
        told = {kind: (str(x["status"]), str(x["reason"]), str(x["message"])) for kind, x in known.items() if x}
        return {**made, **told}
    reached, wanted = completed_version(version), str(at(version, "desired.version") or "")
    completed = (version.get("history") or [{}])[0].get("state") == COMPLETED
    late = unwell(operators)
    return {
        **made,
        c.CLUSTER_VERSION_AVAILABLE: _available(seen, reached, available=available),
        c.CLUSTER_VERSION_PROGRESSING: _progressing(
            seen, wanted, late, completed=completed, available=available, blocked=blocked
        ),
        c.CLUSTER_VERSION_SUCCEEDING: _succeeding(operators if reached else (), blocked),
        c.CLUSTER_VERSION_UPGRADEABLE: next(
            (o.upgradeable for o in operators if o.upgradeable[0] is not True), (True, c.AS_EXPECTED, "All is well")
        ),
    }


def _accepted(seen: Observed) -> Verdict:
    release = seen.release
    if release.problem or release.missing:
        why = release.problem or f"The release lacks: {', '.join(release.missing)}"
        return False, c.RETRIEVE_PAYLOAD, why
    if not release.version:
        return "Unknown", c.STATUS_UNKNOWN, "The release image was not read yet"
    return True, c.PAYLOAD_LOADED, f'Payload loaded version="{release.version}" image="{release.image}"'


def _no_nodes(seen: Observed) -> bool:
    return seen.guest is None or not seen.guest.nodes


def _available(seen: Observed, reached: str, *, available: bool) -> Verdict:
    if reached:
        return True, c.AS_EXPECTED, f"Done applying {reached}"
    if available and _no_nodes(seen):
        return False, c.NO_WORKER_NODES, "The cluster has no nodes yet to run all of its version"
    return False, c.WAITING_FOR_AVAILABLE, "No version was reached yet"


def _progressing(
    seen: Observed, wanted: str, late: Sequence[str], *, completed: bool, available: bool, blocked: str
) -> Verdict:
    if blocked:
        return False, c.BLOCKED, blocked
    if completed:
        return False, c.AS_EXPECTED, f"Cluster version is {wanted}"
    if not available:
        # No names of parts: each of them would be a write while the control plane starts.
        return True, c.ROLLING_OUT, f"Working towards {wanted or 'the release'}: the control plane is rolled out"
    if _no_nodes(seen):
        return True, c.NO_WORKER_NODES, f"Working towards {wanted}: waiting for nodes"
    waiting = f"waiting for {', '.join(late)}" if late else "parts are being replaced"
    return True, c.ROLLING_OUT, f"Working towards {wanted}: {waiting}"


def _succeeding(operators: Sequence[Operator], blocked: str) -> Verdict:
    """Only a version that was reached can be lost: what has never been there is being rolled out."""
    if blocked:
        return False, c.BLOCKED, blocked
    if late := unwell(operators):
        if all(o.available[1] == c.NO_WORKER_NODES for o in operators if not o.works):
            return False, c.NO_WORKER_NODES, f"Without ready nodes these are not available: {', '.join(late)}"
        return False, c.OPERATOR_NOT_AVAILABLE, f"Not available: {', '.join(late)}"
    if degraded := [o.name for o in operators if o.degraded[0] is True]:
        return False, c.OPERATOR_DEGRADED, f"Degraded: {', '.join(degraded)}"
    return True, c.AS_EXPECTED, "All is well"
