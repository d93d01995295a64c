"""Keeping the virt-launcher NetworkPolicy of every hosted cluster in its infra namespace."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_CLUSTER, LABEL_CONTROL_PLANE_NAMESPACE, control_plane_namespace
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS, HOSTEDCONTROLPLANES, NAMESPACES, NETWORKPOLICIES
from hcp.kubevirt import egress
from hcp.kubevirt.infra import Infra, InfraClients, credentials
from hcp.kubevirt.isolation_report import (
    KEPT_OFF,
    NETWORKS_UNKNOWN,
    Verdict,
    node_ports,
    not_written,
    report,
    tell_infra,
)
from hcp.kubevirt.network_policy import NAME, PolicyInput, virt_launcher_policy
from hcp.kubevirt.networks import ManagementNetworks, Networks, networks_of
from hcp.kubevirt.published import OnNodes, PublishedServices, on_nodes
from hcp.runtime import Controller, Result, apply_if_changed
from hcp.runtime.context import OperatorContext
from hcp.runtime.ownership import belongs, cluster_of
from hcp.runtime.store import key_of

Object = dict[str, Any]
# An external cluster is looked at again, since we do not watch there; so are names, of which nobody tells.
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
        self._networks = ManagementNetworks(ctx.informers)
        self._published = PublishedServices(ctx)
        self.controller = Controller("vm-isolation", self._reconcile, workers=2)

    def wire(self) -> Controller:
        """Look again when the hosted cluster, its Services, the cluster's networks or nodes change, when its namespace
        comes into use or its policy is taken away."""
        self.controller.watch(self._clusters)
        self.controller.watch(self._namespaces, cluster_of)
        self.controller.watch(self._planes, self._unkept)
        self.controller.watch(self._policies, self._unkept)
        self.controller.watch(self._published.services, self._cluster_of)
        self._networks.on_change(self._everything)
        return self.controller

    def _everything(self) -> None:
        for cluster in self._clusters.list():
            self.controller.enqueue(key_of(cluster), fresh=False)

    def _cluster_of(self, obj: Object) -> list[str]:
        plane = next(iter(self._planes.list(obj["metadata"]["namespace"])), None)
        key = ((plane or {}).get("metadata", {}).get("annotations") or {}).get(ANNOTATION_CLUSTER)
        return [key] if key else []

    def _unkept(self, obj: Object) -> list[str]:
        """The hosted cluster of this object's namespace, if its machines belong there and have no policy."""
        namespace = obj["metadata"]["namespace"]
        plane = next(iter(self._planes.list(namespace)), None)
        if plane is None or self._policies.get(NAME, namespace) is not None:
            return []
        if credentials(plane["spec"].get("platform") or {}):
            return []  # its machines, and their policy, are in another cluster
        return self._cluster_of(obj)

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
        at_home = self._networks.now()
        beside = await on_nodes(self._published.of(spec, hosted), at_home.nodes, self._published.resolver)
        try:
            verdict = await self._keep(cluster, infra, spec["infraID"], beside, at_home)
        except NotFound:
            return Result(2.0)
        verdicts: dict[str, Verdict | None] = {c.VALID_NODE_PORT_ADDRESSES: node_ports(spec, beside)}
        if infra.external:
            verdicts[c.VALID_KUBEVIRT_NETPOL_RBAC] = verdict
        again = await report(self._ctx.client, cluster, verdicts)
        if infra.external:
            await tell_infra(cluster, infra, verdict)
        return again or (Result(_RECHECK) if infra.external or beside.names else None)

    async def _keep(self, cluster: Object, infra: Infra, infra_id: str, beside: OnNodes, at_home: Networks) -> Verdict:
        there = await networks_of(infra.client) if infra.external else at_home
        policy = virt_launcher_policy(
            PolicyInput(
                namespace=infra.namespace,
                infra_id=infra_id,
                # Machines elsewhere have no business with the nodes of the management cluster either.
                hidden=egress.collapsed([*there.hidden, *at_home.machines]) if infra.external else there.hidden,
                published=beside.targets,
                central=not infra.external,
            )
        )
        if infra.external:
            # Several hosted clusters may share an external namespace: the policy carries the cluster's id.
            policy["metadata"]["name"] = f"{NAME}-{infra_id}"
        try:
            await apply_if_changed(infra.client, None if infra.external else self._policies, policy)
        except Forbidden as error:
            verdict = not_written(str(error))
            self._ctx.events.event(cluster, "Warning", "InsufficientNetworkPolicyRBAC", verdict[2])
            return verdict
        return KEPT_OFF if there.inside else NETWORKS_UNKNOWN
