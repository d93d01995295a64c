"""The caches a node pool's pass reads, and how a change of any of them finds its pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hcp.api.names import CONFIG_NAMESPACE, LABEL_CONTROL_PLANE_NAMESPACE
from hcp.api.names import LABEL_IGNITION_SERVER as DOCUMENT_LABEL
from hcp.api.names import LABEL_NODEPOOL_SECRET as SECRET_LABEL
from hcp.api.paths import at
from hcp.ignition.certs import CA_SECRET, SERVING_SECRET
from hcp.kube import Resource
from hcp.kube.resources import (
    CONFIGMAPS,
    HOSTEDCLUSTERS,
    IMAGE_CONFIGS,
    KUBEVIRTMACHINES,
    KUBEVIRTMACHINETEMPLATES,
    MACHINEDEPLOYMENTS,
    MACHINEHEALTHCHECKS,
    MACHINES,
    MACHINESETS,
    NAMESPACES,
    NODEPOOLS,
    NODEREPAIRS,
    NODEREPAIRTEMPLATES,
    NODES,
    SECRETS,
)
from hcp.runtime import Controller, Informer
from hcp.runtime.context import OperatorContext
from hcp.runtime.ownership import belongs, cluster_of
from hcp.runtime.pools import pool_of_made, pools_of

Object = dict[str, Any]
_NODES_PACE = 1.0
# Fields of a HostedCluster that name a ConfigMap with authorities for its nodes.
_BUNDLES = ("additionalTrustBundle", "configuration.proxy.trustedCA", "configuration.image.additionalTrustedCA")
_SECRETS = ("pullSecret", "sshKey")
# Whom an object of a user's concerns, by its key.
_CONFIGURED, _GIVEN = "configured by", "given"


class Watches:
    """Shared informers by what they are for."""

    def __init__(self, ctx: OperatorContext) -> None:
        informers = ctx.informers
        self._informers = informers
        self.pools = informers.get(NODEPOOLS)
        self.clusters = informers.get(HOSTEDCLUSTERS)
        self.deployments = informers.get(MACHINEDEPLOYMENTS)
        self.sets = informers.get(MACHINESETS)
        self.machines = informers.get(MACHINES)
        self.checks = informers.get(MACHINEHEALTHCHECKS)
        self.repair_templates = informers.get(NODEREPAIRTEMPLATES)
        self.repairs = informers.get(NODEREPAIRS)
        self.templates = informers.get(KUBEVIRTMACHINETEMPLATES)
        self.vm_machines = informers.get(KUBEVIRTMACHINES)
        self.secrets = informers.get(SECRETS, labels=SECRET_LABEL)
        self.documents = informers.get(SECRETS, ns=ctx.namespace, labels=DOCUMENT_LABEL)
        self.management_nodes = informers.get(NODES)
        self._namespaces = informers.get(NAMESPACES, labels=LABEL_CONTROL_PLANE_NAMESPACE)
        self._image_configs = informers.get(IMAGE_CONFIGS)
        label = LABEL_CONTROL_PLANE_NAMESPACE
        self._hosted = {kind: informers.get(kind, labels=label) for kind in (SECRETS, CONFIGMAPS)}
        self._given: dict[tuple[Resource, str], Informer] = {}
        made = (self.machines, self.sets, self.deployments, self.templates, self.repairs, self.secrets, self.documents)
        for informer in made:
            informer.add_index("pool", pool_of_made)
        self.pools.add_index(_CONFIGURED, _configures)
        self.clusters.add_index(_GIVEN, _gives)

    def wire(self, controller: Controller) -> None:
        """Ask for a pass over the right pools when something changes."""
        controller.watch(self.pools)
        controller.watch(self.clusters, self._pools_of_cluster)
        controller.watch(self._namespaces, self._pools_of_namespace)
        machinery = (self.deployments, self.sets, self.machines, self.checks, self.repair_templates, self.repairs)
        for informer in (*machinery, self.secrets, self.documents):
            controller.watch(informer, pool_of_made)
        controller.watch(self.vm_machines, self._pools_of_vm_machine)
        controller.watch(self._image_configs, lambda config: self.pools.keys())
        self.management_nodes.add_listener(self._infra_changed)
        self._controller = controller

    def _infra_changed(self, old: Object | None, new: Object | None) -> None:
        """Whether machines could move at all depends on whether there is a second node."""
        if (old is None) != (new is None) and len(self.management_nodes.keys()) <= 2:
            for key in list(self.pools.keys()):
                self._controller.enqueue(key, fresh=False)

    def look_at_pools(self, cluster: Object) -> None:
        """Ask for a pass over the pools of a hosted cluster whose nodes changed: at a pace that no tenant sets."""
        for key in self._pools_of_cluster(cluster):
            self._controller.enqueue_after(key, _NODES_PACE)

    def has_namespace(self, cluster: Object, hosted: str) -> bool:
        """Whether the hosted namespace is this cluster's, and nobody else's with the same name."""
        return belongs(self._namespaces.get(hosted), cluster)

    async def named(self, kind: Resource, namespace: str, reference: Object | None) -> Object | None:
        """The ConfigMap or Secret that somebody's spec names, if it names one."""
        name = (reference or {}).get("name")
        return await _read(await self.given(kind, namespace), name, namespace) if name else None

    async def given(self, kind: Resource, namespace: str) -> Informer:
        """ConfigMaps or Secrets that people wrote into a namespace."""
        informer = self._given.get((kind, namespace))
        if informer is None:
            informer = self._given[(kind, namespace)] = self._informers.get(kind, ns=namespace)
            self._controller.watch(informer, self._users_of_config_map if kind == CONFIGMAPS else self._users_of_secret)
            await informer.start()
        await informer.wait_synced()
        return informer

    async def authority(self) -> Object | None:
        """A Secret with the bootstrap server's authority in `ca.crt`; its serving certificate comes with it."""
        serving = self.documents.get(SERVING_SECRET, self.documents.ns)
        return serving or await self.documents.client.get_or_none(SECRETS, CA_SECRET, self.documents.ns)

    async def registry_authorities(self) -> Object | None:
        """The ConfigMap of certificate authorities that OpenShift's settings for images name, if they do."""
        return await self.named(CONFIGMAPS, CONFIG_NAMESPACE, self._trusted())

    def _trusted(self) -> Object:
        spec = (self._image_configs.get("cluster") or {}).get("spec") or {}
        return spec.get("additionalTrustedCA") or {}

    async def of_control_plane(self, kind: Resource, name: str, hosted: str) -> Object | None:
        """A Secret or ConfigMap that the control plane's reconciler made."""
        return await _read(self._hosted[kind], name, hosted)

    def of_pool(self, informer: Informer, key: str) -> list[Object]:
        """Everything of one pool (``namespace/name``) in an informer."""
        return informer.by_index("pool", key)

    def _pools_of_cluster(self, cluster: Object) -> Iterable[str]:
        metadata = cluster["metadata"]
        for pool in pools_of(self.pools, metadata["namespace"], metadata["name"]):
            yield f"{metadata['namespace']}/{pool['metadata']['name']}"

    def _pools_of_namespace(self, namespace: Object) -> Iterable[str]:
        for key in cluster_of(namespace):
            cluster = self.clusters.get_key(key)
            yield from self._pools_of_cluster(cluster) if cluster is not None else ()

    def _users_of_config_map(self, item: Object) -> Iterable[str]:
        metadata = item["metadata"]
        for pool in self.pools.by_index(_CONFIGURED, f"{metadata['namespace']}/{metadata['name']}"):
            yield f"{metadata['namespace']}/{pool['metadata']['name']}"
        yield from self._users_in_cluster(item, *_BUNDLES)
        if metadata["namespace"] == CONFIG_NAMESPACE and metadata["name"] == self._trusted().get("name"):
            yield from self.pools.keys()

    def _users_of_secret(self, item: Object) -> Iterable[str]:
        return self._users_in_cluster(item, *_SECRETS)

    def _users_in_cluster(self, item: Object, *fields: str) -> Iterable[str]:
        """Pools of the hosted clusters that name this object in one of these fields."""
        metadata = item["metadata"]
        for cluster in self.clusters.by_index(_GIVEN, f"{metadata['namespace']}/{metadata['name']}"):
            if metadata["name"] in _names(cluster, fields):
                yield from self._pools_of_cluster(cluster)

    def _pools_of_vm_machine(self, item: Object) -> Iterable[str]:
        metadata = item["metadata"]
        machine = self.machines.get(metadata["name"], metadata["namespace"])
        return pool_of_made(machine) if machine is not None else ()


async def _read(informer: Informer, name: str, namespace: str) -> Object | None:
    """What the cache has; what it lacks may have been made a moment ago, so the server is asked."""
    return informer.get(name, namespace) or await informer.client.get_or_none(informer.resource, name, namespace)


def _configures(pool: Object) -> Iterable[str]:
    """ConfigMaps that a pool names."""
    spec = pool.get("spec") or {}
    named = [*(spec.get("config") or []), *(spec.get("tuningConfig") or [])]
    return {f"{pool['metadata']['namespace']}/{entry['name']}" for entry in named if entry.get("name")}


def _gives(cluster: Object) -> Iterable[str]:
    """Secrets and ConfigMaps of a hosted cluster that its nodes carry."""
    return {f"{cluster['metadata']['namespace']}/{name}" for name in _names(cluster, (*_SECRETS, *_BUNDLES))}


def _names(cluster: Object, fields: Iterable[str]) -> set[str]:
    spec = cluster.get("spec") or {}
    return {str(name) for field in fields if (name := at(spec, f"{field}.name"))}
