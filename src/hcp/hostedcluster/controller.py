"""The HostedCluster controller: what it follows, and whose pass a change asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.guest.keeper import Keeper
from hcp.guest.platform.keeper import Platform
from hcp.hostedcluster.cache import ASKED_ONLY, LABELLED, SHARED, Cache
from hcp.hostedcluster.canary import Canary
from hcp.hostedcluster.catalog_digests import CatalogDigests
from hcp.hostedcluster.etcd_maintenance import EtcdMaintenance
from hcp.hostedcluster.etcd_membership import EtcdMembership
from hcp.hostedcluster.external_names import ExternalNames
from hcp.hostedcluster.foreign_namespaces import ForeignNamespaces
from hcp.hostedcluster.infra_ingress import InfraIngress
from hcp.hostedcluster.pod_questions import PodTroubles
from hcp.hostedcluster.reconcile import HostedClusterKind
from hcp.hostedcluster.registries import Registries
from hcp.hostedcluster.releases import Releases
from hcp.hostedcluster.scope import Tools
from hcp.hostedcluster.start_queue import StartQueue
from hcp.hostedcluster.updates import UpdateReader
from hcp.kube import Resource
from hcp.kube import resources as k
from hcp.kubevirt.infra import InfraClients
from hcp.kubevirt.machine_sleep import MachineSleep
from hcp.kubevirt.networks import ManagementNetworks
from hcp.oci.address_policy import AddressPolicy
from hcp.release import Release
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Controller, namespace_of
from hcp.runtime.informer import Informer
from hcp.runtime.pools import cluster_of_pool
from hcp.runtime.reconcile import Reconciler
from hcp.runtime.store import key_of

Object = dict[str, Any]
# Those of one namespace get half of them.
WORKERS, PER_NAMESPACE = 32, 16
# Whose end the deletion of a cluster waits for; the end of everything else means nothing to it.
GOING = ("Namespace", "Cluster")


class HostedClusters:
    """The controller and what its passes share; `release` also serves node pools."""

    def __init__(
        self,
        ctx: OperatorContext,
        guests: Keeper,
        care: EtcdMaintenance,
        membership: EtcdMembership,
        platform: Platform,
        machines: MachineSleep,
    ) -> None:
        self.ctx = ctx
        self.cache = Cache(ctx.client, ctx.informers)
        self._care = care
        networks = ManagementNetworks(ctx.informers)
        registries = Registries(lambda: networks.now().hidden, ctx.internal_registries, ctx.insecure_registries)
        self._releases = Releases(self.cache, registries, self._changed, ctx.registry_overrides)
        self._foreign_namespaces = ForeignNamespaces(ctx.client, self._changed)
        guests.on_change = care.on_change = membership.on_change = machines.on_change = self._changed
        start_queue = StartQueue(self._changed)
        self._updates = UpdateReader(self._releases, self._changed)
        self._catalogs = CatalogDigests(self._releases, self._changed)
        outside = AddressPolicy(guarded=True, inside=lambda: networks.now().hidden)
        self._canary = Canary(outside, self._changed)
        self._names = ExternalNames(self._changed)
        self._infra_ingress = InfraIngress(InfraClients(ctx.client, ctx.guests.pool), self._changed)
        shared = (self.cache, self._releases, guests, care, membership, start_queue, self._foreign_namespaces)
        asked = (self._updates, self._catalogs, platform, self._canary, self._names, self._infra_ingress)
        self._troubles = PodTroubles(ctx.client, self._changed)
        tools = Tools(ctx, *shared, *asked, machines, self._troubles)
        self._controller = Controller(
            "hostedcluster",
            Reconciler(HostedClusterKind(tools)),
            workers=WORKERS,
            max_delay=10.0,
            group=namespace_of,
            per_group=PER_NAMESPACE,
        )
        self._followed: set[str] = set()

    def wire(self) -> Controller:
        """Connect watches; the caller starts the informers, then runs the controller."""
        clusters = self.cache.informer(k.HOSTEDCLUSTERS)
        clusters.add_index("hosted", lambda hc: [_hosted(hc)])
        clusters.add_index("refers", _refers)
        clusters.add_listener(self._seen)
        self._controller.watch(clusters)
        for resource in LABELLED:
            self._controller.watch(self.cache.informer(resource), self._of_hosted_object, reads=_read_of(resource))
        self._controller.watch(self.cache.informer(k.NODEPOOLS), cluster_of_pool)
        for resource in SHARED:
            self._follow_all(self.cache.informer(resource))
        ManagementNetworks(self.ctx.informers).on_change(self._everything)
        for resource in (k.ROUTES, k.SERVICES, k.DEPLOYMENTS):
            informer = self.ctx.informers.get(resource, ns=self.ctx.namespace)
            informer.add_listener(self._ignition_changed)
        asking = (self._updates, self._catalogs, self._canary, self._names, self._infra_ingress, self._troubles)
        self.ctx.closers += [self._releases.close, self._foreign_namespaces.close, *(one.close for one in asking)]
        self.ctx.closers.append(self._untold)
        return self._controller

    async def _untold(self) -> None:
        """What was measured of these clusters is told by another process from now on."""
        for cluster in self.cache.list(k.HOSTEDCLUSTERS):
            self._care.forget(key_of(cluster))

    async def release(self, cluster: Mapping[str, Any], image: str) -> Release:
        """For node pools: the same reading, with the same pull secret, mirrors and trust; errors are raised."""
        return await self._releases.read_or_raise(cluster, image)

    def _changed(self, key: str) -> None:
        self._controller.enqueue(key)

    def _everything(self) -> None:
        for cluster in self.cache.list(k.HOSTEDCLUSTERS):
            self._controller.enqueue(key_of(cluster), fresh=False)

    def _follow_all(self, informer: Informer) -> None:
        """Things that concern every cluster; nodes report every few seconds, so only what we read counts."""

        def listener(old: Object | None, new: Object | None) -> None:
            if not informer.replaying and _relevant(old) != _relevant(new):
                self._everything()

        informer.add_listener(listener)

    def _ignition_changed(self, old: Object | None, new: Object | None) -> None:
        if (new or old or {}).get("metadata", {}).get("name") not in (names.IGNITION_SERVER, names.IGNITION_NODE_PORT):
            return
        if old is None or new is None or _available(old) != _available(new) or old.get("spec") != new.get("spec"):
            self._everything()

    def _seen(self, _old: Object | None, new: Object | None) -> None:
        """Follow what people write in the namespaces that hold HostedClusters."""
        ns = (new or {}).get("metadata", {}).get("namespace")
        if ns is None or ns in self._followed:
            return
        self._followed.add(ns)
        for resource in (k.SECRETS, k.CONFIGMAPS):
            informer = self.cache.user_informer(resource, ns)
            informer.add_listener(self._user_object_listener(informer, ns))

    def _user_object_listener(self, informer: Informer, ns: str) -> Any:
        def listener(old: Object | None, new: Object | None) -> None:
            name = (new or old or {}).get("metadata", {}).get("name", "")
            if informer.replaying:
                return
            for cluster in self.cache.informer(k.HOSTEDCLUSTERS).by_index("refers", f"{ns}/{name}"):
                self._controller.enqueue(key_of(cluster))

        return listener

    def _of_hosted_object(self, obj: Object) -> Iterable[str]:
        """From an object we made to its cluster: by the label, which names the hosted namespace."""
        meta = obj["metadata"]
        hosted = (meta.get("labels") or {}).get(names.LABEL_CONTROL_PLANE_NAMESPACE)
        if obj.get("kind") == "Namespace":
            hosted = meta["name"]
        for cluster in self.cache.informer(k.HOSTEDCLUSTERS).by_index("hosted", hosted or ""):
            if cluster["metadata"].get("deletionTimestamp") and obj.get("kind") not in GOING:
                continue
            yield f"{cluster['metadata']['namespace']}/{cluster['metadata']['name']}"


def _read_of(resource: Resource) -> Callable[[Object], Any] | None:
    """What a change has to be in, to ask for a pass; None for anything.

    A control plane that starts has dozens of changes that say only how far its controllers are.
    """
    if resource in ASKED_ONLY:
        return asked
    return asked_and_counted if resource in (k.DEPLOYMENTS, k.STATEFULSETS) else None


def asked(obj: Object) -> Object:
    """The object without its status and what the server notes about writes."""
    noted = ("managedFields", "resourceVersion")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in noted}
    return {**obj, "metadata": metadata, "status": None}


def asked_and_counted(obj: Object) -> Object:
    """With the pods that are counted, and what is true of them; not how the roll-out gets on."""
    status = obj.get("status") or {}
    told = [
        (one.get("type"), one.get("status"), one.get("reason"), one.get("message"))
        for one in status.get("conditions") or ()
        if one.get("type") != "Progressing"
    ]
    return {**asked(obj), "status": {**status, "conditions": told}}


def _hosted(cluster: Object) -> str:
    meta = cluster["metadata"]
    return names.control_plane_namespace(meta["namespace"], meta["name"])


def _refers(cluster: Object) -> Iterable[str]:
    """Keys of Secrets and ConfigMaps the spec points to."""
    return (f"{cluster['metadata']['namespace']}/{name}" for name in _referenced(cluster["spec"]))


def _referenced(spec: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if key == "name" and isinstance(inner, str):
                    found.add(inner)
                else:
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(spec)
    return found


def _relevant(obj: Object | None) -> Any:
    """What of a cluster-wide object can change a hosted cluster: not a node's heartbeat."""
    if obj is None:
        return None
    if obj.get("kind") == "Node":
        return (obj.get("spec"), obj["metadata"].get("labels"), _ready(obj))
    if obj.get("kind") == k.STORAGEPROFILES.kind:
        return (at(obj, "status.claimPropertySets"), at(obj, "status.cloneStrategy"))
    return (
        obj.get("spec"),
        obj.get("allowVolumeExpansion"),
        obj["metadata"].get("annotations"),
        obj["metadata"].get("labels"),
    )


def _ready(obj: Object) -> Any:
    return [c.get("status") for c in at(obj, "status.conditions") or [] if c.get("type") == "Ready"]


def _available(obj: Object) -> Any:
    return [c.get("status") for c in at(obj, "status.conditions") or [] if c.get("type") == "Available"]
