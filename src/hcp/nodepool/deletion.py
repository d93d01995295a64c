"""Taking a pool away in order, resumable at any point, also when its hosted cluster is gone already."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import Any

from hcp.api.conditions import CLEANUP_TIMED_OUT
from hcp.api.names import (
    ANNOTATION_NODEPOOL,
    FINALIZER,
    LABEL_BOOT_IMAGE_ROLE,
    LABEL_DOCUMENT_OF,
    LABEL_INFRA_ID,
    LABEL_NODEPOOL_NAME,
    LABEL_NODEPOOL_UID,
    control_plane_namespace,
)
from hcp.api.paths import annotations_of, at
from hcp.api.spec import is_unmanaged
from hcp.errors import HcpError
from hcp.kube import Resource
from hcp.kube.errors import ApiError, NotFound
from hcp.kube.resources import (
    CAPI_CLUSTERS,
    DATAVOLUMES,
    KUBEVIRTMACHINETEMPLATES,
    MACHINEDEPLOYMENTS,
    MACHINEHEALTHCHECKS,
    MACHINES,
    MACHINESETS,
    NAMESPACES,
    NODEPOOLS,
    NODEREPAIRTEMPLATES,
    SECRETS,
    VIRTUALMACHINES,
)
from hcp.kubevirt import leftovers, orphans
from hcp.kubevirt.infra import Infra
from hcp.nodepool.bootimage import ROLE
from hcp.nodepool.scope import Object, Tools
from hcp.runtime import Result, ownership

log = logging.getLogger(__name__)
_RETRY = 5.0
# Without it Cluster API tries for ever to delete the Node in a cluster that does not answer: one that sleeps, for one.
_NODE_TIMEOUT = "10s"
_NO_DRAIN = {
    "machine.cluster.x-k8s.io/exclude-node-draining": "",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": "",
}


async def delete_pool(tools: Tools, pool: Object) -> Result | None:
    """One step towards no trace of the pool; asks for another pass until there is none."""
    metadata, spec = pool["metadata"], pool.get("spec") or {}
    if FINALIZER not in (metadata.get("finalizers") or []):
        return None
    key = f"{metadata['namespace']}/{metadata['name']}"
    cluster = tools.watches.clusters.get(spec.get("clusterName", ""), metadata["namespace"])
    hosted = control_plane_namespace(metadata["namespace"], spec.get("clusterName", ""))
    going = cluster is None or bool(cluster["metadata"].get("deletionTimestamp"))
    if await _may_touch(tools, cluster, hosted, f"{metadata['namespace']}/{spec.get('clusterName', '')}"):
        again = None if is_unmanaged(pool) else await _clear_machines(tools, pool, hosted, going=going)
        if again is not None:
            return again
        for secret in await _pool_secrets(tools, hosted, key, hosted):
            await _delete(tools, SECRETS, secret["metadata"]["name"], hosted)
    for secret in await _pool_secrets(tools, tools.ctx.namespace, key, hosted):
        await _delete(tools, SECRETS, secret["metadata"]["name"], tools.ctx.namespace)
    finalizers = [entry for entry in metadata.get("finalizers") or [] if entry != FINALIZER]
    body = {"metadata": {"finalizers": finalizers or None, "resourceVersion": metadata["resourceVersion"]}}
    try:
        await tools.ctx.client.patch(NODEPOOLS, metadata["name"], metadata["namespace"], body)
    except NotFound:
        return None
    return None


async def _may_touch(tools: Tools, cluster: Object | None, hosted: str, cluster_key: str) -> bool:
    """Whether the namespace is that of the pool's cluster: anybody can name a cluster that would have it."""
    if cluster is not None:
        return (await ownership.look(tools.ctx.client, cluster)).ours
    return ownership.mark(await tools.ctx.client.get_or_none(NAMESPACES, hosted))[0] == cluster_key


async def _clear_machines(tools: Tools, pool: Object, hosted: str, *, going: bool) -> Result | None:
    """One step towards no machine of the pool and nothing they are made of; None when that is reached."""
    metadata = pool["metadata"]
    key = f"{metadata['namespace']}/{metadata['name']}"
    await _delete(tools, MACHINEHEALTHCHECKS, metadata["name"], hosted)
    await _delete(tools, NODEREPAIRTEMPLATES, metadata["name"], hosted)
    await _delete(tools, MACHINEDEPLOYMENTS, metadata["name"], hosted)
    left = [m for m in await _list(tools, MACHINES, hosted) if _annotated(m) == key]
    if left:
        if going:
            await _hurry(tools, left)
        if lost := await _lost(tools, pool, hosted):
            machines = ", ".join(sorted(m["metadata"]["name"] for m in left))
            tools.ctx.events.event(pool, "Warning", CLEANUP_TIMED_OUT, f"Not cleaned up: machines {machines} in {lost}")
            await orphans.let_go(tools.ctx.client, hosted, [m["metadata"]["name"] for m in left])
        elif not await _list(tools, CAPI_CLUSTERS, hosted):
            await _release_orphans(tools, pool, hosted, left)
        return Result(_RETRY)
    for machine_set in await _list(tools, MACHINESETS, hosted):
        if _annotated(machine_set) == key:
            await _delete(tools, MACHINESETS, machine_set["metadata"]["name"], hosted)
    for template in await _list(tools, KUBEVIRTMACHINETEMPLATES, hosted):
        if _annotated(template) == key:
            await _delete(tools, KUBEVIRTMACHINETEMPLATES, template["metadata"]["name"], hosted)
    await _delete_caches(tools, pool, hosted)
    return None


def _annotated(item: Mapping[str, Any]) -> str:
    return annotations_of(item).get(ANNOTATION_NODEPOOL, "")


async def _list(tools: Tools, resource: Resource, namespace: str, labels: str | None = None) -> list[Object]:
    """Asked of the server, not of a cache: a stale answer would leave something behind."""
    try:
        return await tools.ctx.client.list(resource, namespace, labels)
    except NotFound:
        return []


async def _pool_secrets(tools: Tools, namespace: str, key: str, hosted: str) -> list[Object]:
    selector = None if namespace == hosted else f"{LABEL_DOCUMENT_OF}={hosted}"
    return [item for item in await _list(tools, SECRETS, namespace, selector) if _annotated(item) == key]


async def _delete(tools: Tools, resource: Resource, name: str, namespace: str) -> None:
    try:
        await tools.ctx.client.delete(resource, name, namespace)
    except NotFound:
        return


async def _hurry(tools: Tools, machines: list[Object]) -> None:
    """The whole cluster goes: draining its nodes one by one helps nobody."""
    for machine in machines:
        metadata = machine["metadata"]
        if _NO_DRAIN.items() <= (metadata.get("annotations") or {}).items():
            continue
        try:
            body = {"metadata": {"annotations": _NO_DRAIN}, "spec": {"nodeDeletionTimeout": _NODE_TIMEOUT}}
            await tools.ctx.client.patch(MACHINES, metadata["name"], metadata["namespace"], body)
        except NotFound:
            continue


async def _release_orphans(tools: Tools, pool: Object, hosted: str, machines: list[Object]) -> None:
    """Cluster API does nothing for machines whose Cluster is gone: remove the VMs and let the machines go ourselves."""
    infra = await _infra(tools, pool, hosted)
    if infra is not None:
        selector = f"{LABEL_NODEPOOL_NAME}={pool['metadata']['name']},{LABEL_INFRA_ID}"
        for vm in await infra.client.list(VIRTUALMACHINES, infra.namespace, selector):
            await infra.client.delete(VIRTUALMACHINES, vm["metadata"]["name"], infra.namespace)
    await orphans.let_go(tools.ctx.client, hosted, [machine["metadata"]["name"] for machine in machines])


async def _lost(tools: Tools, pool: Object, hosted: str) -> str:
    """Why nobody can take the pool's machines away, once that was waited for long enough; empty while there is hope."""
    cluster = tools.watches.clusters.get((pool.get("spec") or {}).get("clusterName", ""), pool["metadata"]["namespace"])
    if not leftovers.given_up((pool, cluster), dt.datetime.now(dt.UTC)):
        return ""
    try:
        infra = await tools.infras.get(hosted, _credentials(pool))
    except ApiError:
        raise
    except HcpError as error:
        return str(error)
    try:
        await infra.client.list(VIRTUALMACHINES, infra.namespace, f"{LABEL_NODEPOOL_NAME}={pool['metadata']['name']}")
    except NotFound:
        return ""
    except ApiError as error:
        return f"namespace {infra.namespace} of the infra cluster: {error}" if infra.external else ""
    return ""


async def _delete_caches(tools: Tools, pool: Object, hosted: str) -> None:
    infra = await _infra(tools, pool, hosted)
    if infra is None:
        return
    selector = f"{LABEL_BOOT_IMAGE_ROLE}={ROLE},{LABEL_NODEPOOL_UID}={pool['metadata']['uid']}"
    try:
        for volume in await infra.client.list(DATAVOLUMES, infra.namespace, selector):
            await infra.client.delete(DATAVOLUMES, volume["metadata"]["name"], infra.namespace)
    except NotFound:
        return
    except ApiError:
        lost = await _lost(tools, pool, hosted)
        if not lost:
            raise
        tools.ctx.events.event(pool, "Warning", CLEANUP_TIMED_OUT, f"Not cleaned up: boot image caches in {lost}")


def _credentials(pool: Object) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (at(pool, "status.platform.kubeVirt") or {}).get("credentials")
    return found


async def _infra(tools: Tools, pool: Object, hosted: str) -> Infra | None:
    """The infra cluster by what the pool itself remembers; None when it can no longer be reached."""
    try:
        return await tools.infras.get(hosted, _credentials(pool))
    except ApiError:
        raise
    except HcpError as error:
        log.warning("the infra cluster of a deleted pool cannot be reached: %s", error)
        return None
