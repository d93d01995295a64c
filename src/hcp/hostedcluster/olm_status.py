"""ClusterOperators of operator-lifecycle-manager, under OpenShift's names: one for each of its programs. Pure."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.guest import olm
from hcp.guest.platform.operators import Operator
from hcp.guest.state import Part
from hcp.hostedcluster.observed import Observed
from hcp.runtime.conditions import Verdict

OPERATORS = {
    "olm-operator": "operator-lifecycle-manager",
    "catalog-operator": "operator-lifecycle-manager-catalog",
    olm.PACKAGES: "operator-lifecycle-manager-packageserver",
}


def operators(seen: Observed, reached: str) -> list[Operator]:
    """None where no catalog is read."""
    guest = seen.guest
    if guest is None:
        return []
    version = seen.release.version if guest.version == seen.release.version else reached
    return [_one(part, bool(guest.ready_nodes), version, reached) for part in guest.olm]


def _one(part: Part, nodes: bool, version: str, reached: str) -> Operator:
    available: Verdict = (True, c.AS_EXPECTED, f"Deployment {part.name} is there")
    if not nodes:
        available = (False, c.NO_WORKER_NODES, "No node is ready to run it")
    elif not part.some:
        available = (False, c.WAITING_FOR_AVAILABLE, f"Waiting for Deployment {part.name}")
    progressing: Verdict = (False, c.AS_EXPECTED, "")
    if not part.newest:
        progressing = (True, c.ROLLING_OUT, f"Pods are started or replaced: Deployment {part.name}")
    good: Verdict = (True, c.AS_EXPECTED, "All is well")
    related = (("apps", "deployments", olm.NAMESPACE, part.name), ("", "namespaces", "", olm.NAMESPACE))
    told = version if part.newest and part.some else reached
    return Operator(OPERATORS[part.name], available, progressing, (False, c.AS_EXPECTED, ""), good, told, related)
