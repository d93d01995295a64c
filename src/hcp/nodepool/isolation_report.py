"""Saying on the HostedCluster, and in the infra cluster, whether its machines are kept off the infra networks."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions as c
from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS
from hcp.kubevirt.infra import Infra
from hcp.runtime import EventRecorder, Result
from hcp.runtime.conditions import get_condition, set_condition

Object = dict[str, Any]
Verdict = tuple[bool, str, str]

KEPT_OFF: Verdict = (True, c.AS_EXPECTED, "Machines are kept off the networks of the infra cluster")
NETWORKS_UNKNOWN: Verdict = (
    False,
    c.INFRA_NETWORK_READ_FAILED,
    "The networks of the infra cluster cannot be read: machines may reach its pods and services. Its owner grants "
    "get on networks.config.openshift.io, as hcp rbac external-infra prints it",
)


def not_written(why: str) -> Verdict:
    return False, c.INFRA_NETPOL_CREATE_FAILED, f"The virt-launcher NetworkPolicy cannot be written there: {why}"


async def report(client: Client, cluster: Object, infra: Infra, verdict: Verdict) -> Result | None:
    """Set the condition when it changes; a bad turn is told in the infra namespace too, where its owner looks."""
    good, reason, message = verdict
    metadata, before = cluster["metadata"], (cluster.get("status") or {}).get("conditions")
    had = get_condition(before, c.VALID_KUBEVIRT_NETPOL_RBAC) or {}
    if (had.get("status"), had.get("reason"), had.get("message")) == (str(good), reason, message):
        return None
    generation = int(metadata.get("generation") or 0)
    after = set_condition(before, c.VALID_KUBEVIRT_NETPOL_RBAC, good, reason, message, generation)
    body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"conditions": after}}
    try:
        await client.patch(HOSTEDCLUSTERS, metadata["name"], metadata["namespace"], body, subresource="status")
    except Conflict:
        return Result(1.0)
    except NotFound:
        return None
    if not good:
        about = {"name": infra.namespace, "namespace": infra.namespace}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
        recorder = EventRecorder(infra.client, "hypershift-operator")
        await recorder.event(namespace, "Warning", "InsufficientNetworkPolicyRBAC", message)
    return None
