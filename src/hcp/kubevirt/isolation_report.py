"""Saying on the HostedCluster, and in the infra cluster, what machines are kept off and let through to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS
from hcp.kubevirt.infra import Infra
from hcp.kubevirt.published import OnNodes
from hcp.runtime import EventRecorder, Result
from hcp.runtime.conditions import get_condition, remove_condition, set_condition

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


def node_ports(spec: Mapping[str, Any], beside: OnNodes) -> Verdict | None:
    """Whether all node port addresses are those of nodes; nothing for a cluster that publishes none so."""
    strategies = [entry.get("servicePublishingStrategy") or {} for entry in spec.get("services") or []]
    if not any(strategy.get("type") == "NodePort" for strategy in strategies):
        return None
    if beside.problems:
        return False, c.NOT_A_NODE_ADDRESS, "; ".join(beside.problems)
    return True, c.AS_EXPECTED, "Node port addresses are those of nodes of the management cluster"


async def report(client: Client, cluster: Object, verdicts: Mapping[str, Verdict | None]) -> Result | None:
    """Set the conditions that changed; a verdict of None takes its condition away."""
    metadata, before = cluster["metadata"], at(cluster, "status.conditions")
    generation = int(metadata.get("generation") or 0)
    after = [dict(entry) for entry in before or []]
    for kind, verdict in verdicts.items():
        had = get_condition(before, kind)
        if verdict is None:
            after = remove_condition(after, kind)
        elif _said(had) != (str(verdict[0]), *verdict[1:]):
            after = set_condition(after, kind, *verdict, generation)
    if after == list(before or []):
        return None
    body = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"conditions": after}}
    try:
        await client.patch(HOSTEDCLUSTERS, metadata["name"], metadata["namespace"], body, subresource="status")
    except Conflict:
        return Result(1.0)
    except NotFound:
        return None
    return None


def _said(condition: Mapping[str, Any] | None) -> tuple[Any, ...]:
    known = condition or {}
    return known.get("status"), known.get("reason"), known.get("message")


async def tell_infra(cluster: Object, infra: Infra, verdict: Verdict) -> None:
    """A bad turn is told in the infra namespace too, where its owner looks."""
    had = get_condition(at(cluster, "status.conditions"), c.VALID_KUBEVIRT_NETPOL_RBAC)
    if verdict[0] or _said(had) == (str(verdict[0]), *verdict[1:]):
        return
    about = {"name": infra.namespace, "namespace": infra.namespace}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": about}
    recorder = EventRecorder(infra.client, "hypershift-operator")
    await recorder.event(namespace, "Warning", "InsufficientNetworkPolicyRBAC", verdict[2])
