"""Taking a hosted cluster away: in order, resumable at any point, needing no object that may be gone."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Callable, Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import annotations_of, at, labels_of
from hcp.controlplane.meta import LABEL_COMPONENT
from hcp.hostedcluster.cache import Cache
from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import (
    CAPI_CLUSTERS,
    DEPLOYMENTS,
    HOSTEDCLUSTERS,
    HOSTEDCONTROLPLANES,
    NAMESPACES,
    NODEPOOLS,
    PODS,
    SECRETS,
    STATEFULSETS,
)
from hcp.kubevirt import leftovers, orphans
from hcp.runtime import durations, ownership
from hcp.runtime.conditions import get_condition, set_condition
from hcp.runtime.controller import Result
from hcp.runtime.pools import pools_of
from hcp.runtime.reconcile import write_status

log = logging.getLogger(__name__)
Object = dict[str, Any]
WORKLOADS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", names.CSI_CONTROLLER, names.AUTOSCALER)
# Watches drive deletion; this is for what has none.
CHECK_AGAIN = 5.0
HURRY = 1
SKIP = f", or until annotation {names.ANNOTATION_SKIP_INFRA_CLEANUP}=true is set"


async def delete(
    client: Client,
    cache: Cache,
    cluster: Object,
    claim: ownership.Claim,
    now: dt.datetime,
    warn: Callable[[str, str], object],
) -> Result | None:
    """One step further; None when nothing is left but the finalizer, which is then removed.

    ``warn`` records an event (reason and sentence): what was left behind is told by something that outlives the object.
    """
    meta = cluster["metadata"]
    ns, name = meta["namespace"], meta["name"]
    hosted = names.control_plane_namespace(ns, name)
    infra_id = cluster["spec"].get("infraID") or ""
    ours = not claim.foreign  # somebody else's namespace stays exactly as it is
    if ours and infra_id:
        await _unpause(client, infra_id, hosted)
    waiting, behind = await _node_pools(client, cache, ns, name), ""
    if not waiting and ours and infra_id:
        waiting, behind = await _elsewhere(client, cache, cluster, hosted, now)
        if behind:
            warn(c.CLEANUP_TIMED_OUT, behind)
    if not waiting and ours:
        waiting = await _hosted_namespace(client, cluster, claim)
    if waiting:
        log.info("deleting", extra={"key": f"{ns}/{name}", "waiting_for": waiting})
        reason = c.CLEANUP_TIMED_OUT if behind else c.WAITING_FOR_AVAILABLE
        message = f"Waiting until {waiting} is gone" + (f". {behind}" if behind else "")
        await _tell(cache, cluster, reason, message, now)
        return Result(CHECK_AGAIN)
    await _user_secrets(client, cache, ns, hosted, infra_id)
    if (rest := await _grace(cache, cluster, now)) > 0:
        return Result(rest)
    await _release(client, cluster)
    return None


async def _elsewhere(client: Client, cache: Cache, cluster: Object, hosted: str, now: dt.datetime) -> tuple[str, str]:
    """What is waited for in an infra cluster and in Cluster API, and what nobody will clean up any more.

    The infra cluster comes first: its kubeconfig goes with Cluster API's Cluster.
    """
    infra_id = str(cluster["spec"]["infraID"])
    left = await leftovers.clear(client, hosted, cluster["spec"].get("platform") or {}, infra_id)
    if left.waiting:
        return left.waiting, ""
    hopeless = left.forever or leftovers.given_up((cluster,), now)
    if left.lost and not hopeless:
        return f"what it has in {left.lost} (for {leftovers.GIVE_UP_AFTER:.0f} s at most{SKIP})", ""
    waiting = await _capi_cluster(client, cache, infra_id, hosted)
    if waiting and left.lost:
        # Its provider needs the infra cluster to let go, and would wait for ever.
        await orphans.let_go(client, hosted)
    if not left.lost or (left.forever and not waiting):
        return waiting, ""
    return waiting, f"Not cleaned up: whatever has label {names.LABEL_INFRA_ID}={infra_id} in {left.lost}"


async def _node_pools(client: Client, cache: Cache, ns: str, name: str) -> str:
    pools = pools_of(cache.informer(NODEPOOLS), ns, name)
    for pool in pools:
        if not pool["metadata"].get("deletionTimestamp"):
            await client.delete(NODEPOOLS, pool["metadata"]["name"], ns, missing_ok=True)
    return f"NodePool {', '.join(p['metadata']['name'] for p in pools)}" if pools else ""


async def _unpause(client: Client, infra_id: str, hosted: str) -> None:
    """A paused Cluster, whether by its owner or because it sleeps, would never let its Machines go."""
    live = await client.get_or_none(CAPI_CLUSTERS, infra_id, hosted)
    if live is not None and live["spec"].get("paused"):
        await client.patch(CAPI_CLUSTERS, infra_id, hosted, {"spec": {"paused": False}})


async def _capi_cluster(client: Client, cache: Cache, infra_id: str, hosted: str) -> str:
    live = await client.get_or_none(CAPI_CLUSTERS, infra_id, hosted)
    if live is None:
        return ""
    if not live["metadata"].get("deletionTimestamp"):
        await client.delete(CAPI_CLUSTERS, infra_id, hosted, propagation="Background", missing_ok=True)
        if not live["metadata"].get("finalizers"):
            return ""
    return f"Cluster {infra_id} of Cluster API"


async def _hosted_namespace(client: Client, cluster: Object, claim: ownership.Claim) -> str:
    """Pods first and in a hurry: nobody needs an orderly end of a control plane whose data goes away with it."""
    live = claim.namespace
    if live is None:
        return ""
    hosted = live["metadata"]["name"]
    keep = annotations_of(cluster).get(names.ANNOTATION_SKIP_DELETE_NAMESPACE) == "true"
    if live["metadata"].get("deletionTimestamp") and not keep:
        return f"namespace {hosted}"
    await asyncio.gather(
        client.delete(STATEFULSETS, "etcd", hosted, propagation="Background", missing_ok=True),
        *(client.delete(DEPLOYMENTS, n, hosted, propagation="Background", missing_ok=True) for n in WORKLOADS),
    )
    pods = await client.list(PODS, hosted, labels=LABEL_COMPONENT)
    await asyncio.gather(
        *(client.delete(PODS, p["metadata"]["name"], hosted, grace=HURRY, missing_ok=True) for p in pods)
    )
    await client.delete(HOSTEDCONTROLPLANES, cluster["metadata"]["name"], hosted, missing_ok=True)
    if keep:
        return ""
    await client.delete(NAMESPACES, hosted, uid=live["metadata"]["uid"], missing_ok=True)
    return f"namespace {hosted}"


async def _user_secrets(client: Client, cache: Cache, ns: str, hosted: str, infra_id: str) -> None:
    """What we put beside the HostedCluster, and what the command line made for it and marked as its own."""
    found = [s for s in cache.list(SECRETS, ns) if labels_of(s).get(names.LABEL_CONTROL_PLANE_NAMESPACE) == hosted]
    if infra_id and len(infra_id) <= leftovers.MAX_LABEL:
        marks = f"{names.LABEL_SAFE_TO_DELETE}=true,{names.LABEL_AUTO_CREATED}={infra_id}"
        found += await client.list(SECRETS, ns, labels=marks)
    for name in {s["metadata"]["name"] for s in found}:
        await client.delete(SECRETS, name, ns, missing_ok=True)


async def _grace(cache: Cache, cluster: Object, now: dt.datetime) -> float:
    """Seconds to wait yet, by annotation destroy-grace-period, counted from the moment all else was gone."""
    text = annotations_of(cluster).get(names.ANNOTATION_DESTROY_GRACE, "")
    seconds = durations.parse(text) or 0.0
    if seconds <= 0:
        return 0.0
    have = get_condition(at(cluster, "status.conditions"), c.HOSTED_CLUSTER_DESTROYED)
    if have is None or have.get("reason") != c.WAITING_FOR_GRACE_PERIOD:
        await _tell(cache, cluster, c.WAITING_FOR_GRACE_PERIOD, f"Waiting {text} before the object goes", now)
        return seconds
    since = dt.datetime.fromisoformat(str(have["lastTransitionTime"]))
    return max((since + dt.timedelta(seconds=seconds) - now).total_seconds(), 0.0)


async def _tell(cache: Cache, cluster: Object, reason: str, message: str, now: dt.datetime) -> None:
    """HostedClusterDestroyed says what deletion waits for; written only when that changes."""
    known = at(cluster, "status.conditions")
    have = get_condition(known, c.HOSTED_CLUSTER_DESTROYED)
    if have is not None and have.get("reason") == reason and have.get("message") == message:
        return
    if have is not None and have.get("reason") != reason:
        # A new reason begins a new time, even though the status stays False.
        known = [x for x in known or () if x["type"] != c.HOSTED_CLUSTER_DESTROYED]
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    generation = int(cluster["metadata"].get("generation") or 0)
    conditions = set_condition(known, c.HOSTED_CLUSTER_DESTROYED, False, reason, message, generation, at=stamp)
    status = {**(cluster.get("status") or {}), "conditions": conditions}
    await write_status(cache.informer(HOSTEDCLUSTERS), cluster, status)


async def _release(client: Client, cluster: Mapping[str, Any]) -> None:
    """Remove our finalizer, and only ours."""
    meta = cluster["metadata"]
    left = [f for f in meta.get("finalizers") or [] if f != names.FINALIZER]
    if left == (meta.get("finalizers") or []):
        return
    body = {"metadata": {"finalizers": left or None, "resourceVersion": meta["resourceVersion"]}}
    try:
        await client.patch(HOSTEDCLUSTERS, meta["name"], meta["namespace"], body)
    except NotFound:
        return
    except Conflict:
        log.debug("finalizer not removed yet, the object changed", extra={"name": meta["name"]})
        raise
