"""What the reconciler reads and how it writes: shared caches, and writes only on change.

Objects of hosted namespaces are followed by their label; objects people write into the HostedCluster's namespace carry
no label of ours, so there the Secrets and ConfigMaps of that one namespace are followed.
"""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.kube import Client, Resource
from hcp.kube import resources as k
from hcp.kube.errors import AlreadyExists, NotFound
from hcp.kube.resources import resource_for
from hcp.runtime.apply import apply_if_changed
from hcp.runtime.context import Informers
from hcp.runtime.informer import Informer

Object = dict[str, Any]

# Followed everywhere by label, because we make them in every hosted namespace.
LABELLED: tuple[Resource, ...] = (
    k.SECRETS,
    k.CONFIGMAPS,
    k.SERVICES,
    k.DEPLOYMENTS,
    k.STATEFULSETS,
    k.PDBS,
    k.NETWORKPOLICIES,
    k.ROLEBINDINGS,
    k.SERVICEACCOUNTS,
    k.NAMESPACES,
    k.HOSTEDCONTROLPLANES,
    k.CONTROLPLANECOMPONENTS,
    k.ROUTES,
    k.CAPI_CLUSTERS,
    k.KUBEVIRTCLUSTERS,
)
# Made in every hosted namespace too, but their changes ask for no pass: a status that counts pods all day long, and
# what is of no use to the cluster itself.
QUIET: tuple[Resource, ...] = (k.RESOURCEQUOTAS, k.PODMONITORS)
# Of these passes read what is asked for, never how far somebody is with it.
ASKED_ONLY: tuple[Resource, ...] = (k.PDBS, k.CAPI_CLUSTERS)
# Belong to the whole management cluster: a change may concern every hosted cluster.
SHARED: tuple[Resource, ...] = (
    k.NODES,
    k.STORAGECLASSES,
    k.STORAGEPROFILES,
    k.VOLUMESNAPSHOTCLASSES,
    k.INGRESS_CONFIGS,
    k.IMAGE_CONFIGS,
    k.IDMS,
    k.ITMS,
    k.ICSP,
)


class Cache:
    """Informers for all kinds the HostedCluster reconciler touches."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self.client = client
        self._informers = informers
        self._by_kind: dict[Resource, Informer] = {
            **{res: informers.get(res, labels=names.LABEL_CONTROL_PLANE_NAMESPACE) for res in (*LABELLED, *QUIET)},
            **{res: informers.get(res) for res in (k.HOSTEDCLUSTERS, k.NODEPOOLS, *SHARED)},
        }
        # Also those that other processes work on: what no two clusters can have is seen here.
        self.all_clusters = informers.all_clusters()
        self.all_namespaces = informers.all_namespaces()

    def informer(self, resource: Resource) -> Informer:
        return self._by_kind[resource]

    def get(self, resource: Resource, name: str, ns: str | None = None) -> Object | None:
        return self._by_kind[resource].get(name, ns)

    def list(self, resource: Resource, ns: str | None = None) -> list[Object]:
        return self._by_kind[resource].list(ns)

    async def user_object(self, resource: Resource, name: str, ns: str) -> Object | None:
        """A Secret or ConfigMap that a person made in the HostedCluster's namespace."""
        informer = self._informers.get(resource, ns=ns)
        await informer.start()
        await informer.wait_synced()
        return informer.get(name, ns)

    def user_informer(self, resource: Resource, ns: str) -> Informer:
        return self._informers.get(resource, ns=ns)

    async def apply(self, obj: Object) -> Object:
        """Make it so, with a write only if it is not."""
        return await apply_if_changed(self.client, self._by_kind.get(resource_for(obj)), obj)

    async def create_once(self, obj: Object) -> Object:
        """Make it if it does not exist, and give what exists: for keys, which must never be replaced by newer ones."""
        resource = resource_for(obj)
        meta = obj["metadata"]
        try:
            made = await self.client.create(obj)
        except AlreadyExists:
            made = await self.client.get(resource, meta["name"], meta.get("namespace"))
        if resource in self._by_kind:
            self._by_kind[resource].observe(made)
        return made

    async def remove(self, resource: Resource, name: str, ns: str | None = None, **options: Any) -> bool:
        """Delete unless it is known to be gone; whether it may still be there."""
        informer = self._by_kind.get(resource)
        live = informer.get(name, ns) if informer is not None and informer.synced else None
        if informer is not None and live is None:
            live = await self.client.get_or_none(resource, name, ns)
        if live is None:
            return False
        if live["metadata"].get("deletionTimestamp") is None:
            try:
                await self.client.delete(resource, name, ns, uid=live["metadata"]["uid"], **options)
            except NotFound:
                return False
        return True
