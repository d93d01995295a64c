"""The caches a node pool's pass reads, and how a change of any of them finds its pool."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hcp.api.names import ANNOTATION_NODEPOOL
from hcp.ignition.store import LABEL as DOCUMENT_LABEL
from hcp.kube.resources import (
    CONFIGMAPS,
    HOSTEDCLUSTERS,
    KUBEVIRTMACHINES,
    KUBEVIRTMACHINETEMPLATES,
    MACHINEDEPLOYMENTS,
    MACHINEHEALTHCHECKS,
    MACHINES,
    MACHINESETS,
    NODEPOOLS,
    SECRETS,
)
from hcp.nodepool.secrets import LABEL as SECRET_LABEL
from hcp.runtime import Controller, Informer
from hcp.runtime.context import OperatorContext

Object = dict[str, Any]


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
        self.templates = informers.get(KUBEVIRTMACHINETEMPLATES)
        self.vm_machines = informers.get(KUBEVIRTMACHINES)
        self.secrets = informers.get(SECRETS, labels=SECRET_LABEL)
        self.documents = informers.get(SECRETS, ns=ctx.namespace, labels=DOCUMENT_LABEL)
        self._config_maps: dict[str, Informer] = {}
        for informer in (self.machines, self.sets, self.deployments, self.templates, self.secrets, self.documents):
            informer.add_index("pool", _pool_key)

    def wire(self, controller: Controller) -> None:
        """Ask for a pass over the right pools when something changes."""
        controller.watch(self.pools)
        controller.watch(self.clusters, self._pools_of_cluster)
        for informer in (self.deployments, self.sets, self.machines, self.checks, self.secrets, self.documents):
            controller.watch(informer, _pool_key)
        controller.watch(self.vm_machines, self._pools_of_vm_machine)
        self._controller = controller

    async def config_maps(self, namespace: str) -> Informer:
        """ConfigMaps of a namespace that holds pools with user configuration."""
        informer = self._config_maps.get(namespace)
        if informer is None:
            informer = self._informers.get(CONFIGMAPS, ns=namespace)
            self._config_maps[namespace] = informer
            self._controller.watch(informer, self._pools_of_config_map)
            await informer.start()
        await informer.wait_synced()
        return informer

    def of_pool(self, informer: Informer, key: str) -> list[Object]:
        """Everything of one pool (``namespace/name``) in an informer."""
        return informer.by_index("pool", key)

    def _pools_of_cluster(self, cluster: Object) -> Iterable[str]:
        metadata = cluster["metadata"]
        for pool in self.pools.list(metadata["namespace"]):
            if (pool.get("spec") or {}).get("clusterName") == metadata["name"]:
                yield f"{metadata['namespace']}/{pool['metadata']['name']}"

    def _pools_of_config_map(self, item: Object) -> Iterable[str]:
        metadata = item["metadata"]
        for pool in self.pools.list(metadata["namespace"]):
            spec = pool.get("spec") or {}
            named = [*(spec.get("config") or []), *(spec.get("tuningConfig") or [])]
            if any(entry.get("name") == metadata["name"] for entry in named):
                yield f"{metadata['namespace']}/{pool['metadata']['name']}"

    def _pools_of_vm_machine(self, item: Object) -> Iterable[str]:
        metadata = item["metadata"]
        machine = self.machines.get(metadata["name"], metadata["namespace"])
        return _pool_key(machine) if machine is not None else ()


def _pool_key(item: Object) -> Iterable[str]:
    key = (item["metadata"].get("annotations") or {}).get(ANNOTATION_NODEPOOL)
    return (key,) if key else ()
