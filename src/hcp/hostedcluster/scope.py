"""One pass over one HostedCluster: what it was given, and what its phases have found out so far."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.controlplane.params import Params
from hcp.controlplane.rotation import Authority
from hcp.guest.keeper import Keeper
from hcp.guest.platform.keeper import Platform
from hcp.hostedcluster.cache import Cache
from hcp.hostedcluster.canary import Canary
from hcp.hostedcluster.catalog_digests import CatalogDigests
from hcp.hostedcluster.etcd_maintenance import EtcdMaintenance
from hcp.hostedcluster.etcd_membership import EtcdMembership
from hcp.hostedcluster.external_names import ExternalNames
from hcp.hostedcluster.foreign_namespaces import ForeignNamespaces
from hcp.hostedcluster.infra_ingress import InfraIngress
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.pod_questions import PodTroubles
from hcp.hostedcluster.releases import Releases
from hcp.hostedcluster.start_queue import StartQueue
from hcp.hostedcluster.updates import UpdateReader
from hcp.kube.resources import NODEPOOLS
from hcp.kubevirt.machine_sleep import MachineSleep
from hcp.release import Release
from hcp.runtime.context import OperatorContext
from hcp.runtime.ownership import Claim
from hcp.runtime.phases import Facts
from hcp.runtime.pools import pools_of

Object = dict[str, Any]
# A cause outside our watches (a registry, a neighbour with the same infraID, a kind not served yet) is looked at again
# at this pace.
LOOK_AGAIN = 10.0


@dataclass(frozen=True)
class Tools:
    """What all passes share."""

    ctx: OperatorContext
    cache: Cache
    releases: Releases
    guests: Keeper
    care: EtcdMaintenance
    membership: EtcdMembership
    start_queue: StartQueue
    foreign_namespaces: ForeignNamespaces
    updates: UpdateReader
    catalogs: CatalogDigests
    platform: Platform
    canary: Canary
    names: ExternalNames
    infra_ingress: InfraIngress
    machines: MachineSleep
    troubles: PodTroubles

    def forget(self, key: str) -> None:
        """Nothing is looked after or read any more for this cluster."""
        self.releases.forget(key)
        self.rest(key)

    def rest(self, key: str) -> None:
        """Nobody asks anything of this cluster, or for it."""
        self.guests.forget(key)
        self.care.forget(key)
        self.membership.forget(key)
        self.updates.forget(key)
        self.catalogs.forget(key)
        self.platform.forget(key)
        self.canary.forget(key)
        self.names.forget(key)
        self.infra_ingress.forget(key)
        self.troubles.forget(key)


@dataclass(frozen=True, kw_only=True)
class Learned(Facts):
    """What a phase of a HostedCluster found out."""

    # Fields of the builders' params that are known now.
    params: Mapping[str, Any] = field(default_factory=dict)
    # Fields of `Observed`, for the status.
    seen: Mapping[str, Any] = field(default_factory=dict)
    # Objects of this pass; Secrets and ConfigMaps are kept, for the hashes of what mounts them.
    made: tuple[Object, ...] = ()
    release: Release | None = None
    authorities: Mapping[str, Authority] | None = None


@dataclass(frozen=True)
class Scope:
    """Read by phases, changed by none of them: the next step gets one that has learned."""

    tools: Tools
    cluster: Object
    params: Params
    now: dt.datetime
    seen: Observed
    # Whose the hosted namespace is, as the server said at the beginning of the pass.
    claim: Claim
    release: Release | None = None
    authorities: Mapping[str, Authority] = field(default_factory=dict)
    # Secrets and ConfigMaps of this pass by (kind, name): what workloads mount, for their hashes.
    made: Mapping[tuple[str, str], Object] = field(default_factory=dict)

    @property
    def ctx(self) -> OperatorContext:
        return self.tools.ctx

    @property
    def cache(self) -> Cache:
        return self.tools.cache

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.cluster["spec"]
        return spec

    @property
    def namespace(self) -> str:
        return self.params.namespace

    @property
    def pools(self) -> list[Object]:
        """The node pools of this cluster."""
        return pools_of(self.cache.informer(NODEPOOLS), self.params.cluster_namespace, self.params.name)

    @property
    def startable(self) -> bool:
        """Without a complete release nothing new is started, and nothing that runs is touched."""
        return self.release is not None and self.seen.release.usable

    def secrets(self) -> dict[str, Object]:
        return {name: manifest for (kind, name), manifest in self.made.items() if kind == "Secret"}


def learn(scope: Scope, facts: Learned) -> Scope:
    """The scope that knows these facts too."""
    made = {(o["kind"], o["metadata"]["name"]): o for o in facts.made if o["kind"] in ("Secret", "ConfigMap")}
    return replace(
        scope,
        params=replace(scope.params, **facts.params) if facts.params else scope.params,
        seen=replace(scope.seen, **facts.seen) if facts.seen else scope.seen,
        made={**scope.made, **made} if made else scope.made,
        release=facts.release or scope.release,
        authorities=scope.authorities if facts.authorities is None else facts.authorities,
    )
