"""Keeping the virt-launcher NetworkPolicy of every hosted cluster in its infra namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.names import ANNOTATION_CLUSTER, LABEL_CONTROL_PLANE_NAMESPACE, control_plane_namespace
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS, HOSTEDCONTROLPLANES, NAMESPACES, NETWORKPOLICIES
from hcp.kubevirt.infra import InfraClients, credentials
from hcp.kubevirt.netpol import NAME, PolicyInput, virt_launcher_policy
from hcp.kubevirt.networks import api_endpoints, cluster_networks
from hcp.nodepool.isolation_report import KEPT_OFF, NETWORKS_UNKNOWN, not_written, report
from hcp.runtime import Controller, Result, apply_if_changed
from hcp.runtime.context import OperatorContext
from hcp.runtime.ownership import belongs, cluster_of

Object = dict[str, Any]
# The management cluster's networks practically never change; an external one's policy is looked at again, since we
# do not watch there.
_RECHECK = 600.0


class Isolation:
    """One policy per hosted cluster with KubeVirt workers."""

    def __init__(self, ctx: OperatorContext, infras: InfraClients) -> None:
        self._ctx = ctx
        self._infras = infras
        self._clusters = ctx.informers.get(HOSTEDCLUSTERS)
        self._policies = ctx.informers.get(NETWORKPOLICIES)
        self._namespaces = ctx.informers.get(NAMESPACES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._planes = ctx.informers.get(HOSTEDCONTROLPLANES)
        self.controller = Controller("vm-isolation", self._reconcile, workers=2)

    def wire(self) -> Controller:
        """Look again when the hosted cluster changes, its namespace comes into use or its policy is taken away."""
        self.controller.watch(self._clusters)
        self.controller.watch(self._namespaces, cluster_of)
        self.controller.watch(self._planes, self._unkept)
        self.controller.watch(self._policies, self._unkept)
        return self.controller

    def _unkept(self, obj: Object) -> list[str]:
        """The hosted cluster of this object's namespace, if its machines belong there and have no policy."""
        namespace = obj["metadata"]["namespace"]
        plane = next(iter(self._planes.list(namespace)), None)
        if plane is None or self._policies.get(NAME, namespace) is not None:
            return []
        if credentials(plane["spec"].get("platform") or {}):
            return []  # its machines, and their policy, are in another cluster
        key = (plane["metadata"].get("annotations") or {}).get(ANNOTATION_CLUSTER)
        return [key] if key else []

    async def _reconcile(self, key: str) -> Result | None:
        cluster = self._clusters.get_key(key)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return None
        spec = cluster.get("spec") or {}
        platform = spec.get("platform") or {}
        if platform.get("type") != "KubeVirt" or not spec.get("infraID"):
            return None
        namespace, _, name = key.partition("/")
        hosted = control_plane_namespace(namespace, name)
        given = credentials(platform)
        if not given and self._planes.get(name, hosted) is None:
            return None  # a cluster that waits for its turn has no namespace yet
        if not belongs(self._namespaces.get(hosted), cluster):
            return None  # somebody else's, or not made yet: its event comes
        infra = await self._infras.get(hosted, given)
        networks = await cluster_networks(infra.client)
        policy = virt_launcher_policy(
            PolicyInput(
                namespace=infra.namespace,
                infra_id=spec["infraID"],
                networks=networks,
                node_port_addresses=node_port_addresses(spec),
                api_endpoints=await api_endpoints(infra.client),
                central=not infra.external,
            )
        )
        if infra.external:
            # Several hosted clusters may share an external namespace: the policy carries the cluster's id.
            policy["metadata"]["name"] = f"{NAME}-{spec['infraID']}"
        verdict = KEPT_OFF if networks else NETWORKS_UNKNOWN
        try:
            await apply_if_changed(infra.client, None if infra.external else self._policies, policy)
        except NotFound:
            return Result(2.0)
        except Forbidden as error:
            verdict = not_written(str(error))
            self._ctx.events.event(cluster, "Warning", "InsufficientNetworkPolicyRBAC", verdict[2])
        if not infra.external:
            return None
        return await report(self._ctx.client, cluster, infra, verdict) or Result(_RECHECK)


def node_port_addresses(spec: Mapping[str, Any]) -> list[str]:
    """The addresses under which services are published by node port."""
    strategies = [entry.get("servicePublishingStrategy") or {} for entry in spec.get("services") or []]
    return [(entry.get("nodePort") or {}).get("address", "") for entry in strategies]
