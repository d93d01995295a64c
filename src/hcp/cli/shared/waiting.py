"""Waiting for hosted clusters and node pools; used by `create --wait`, `wait`, `scale --wait`, `upgrade --wait`
and `destroy`. What is judged are the objects as last seen; see watched.py for how they get here."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions, names
from hcp.cli.shared import health, machine_messages
from hcp.cli.shared.progress import wait_until
from hcp.cli.shared.watched import Watched
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS

Object = dict[str, Any]
NOT_FOUND = 4
KINDS = {"hosted cluster": HOSTEDCLUSTERS, "node pool": NODEPOOLS}


async def wait_cluster(
    client: Client,
    prog: str,
    namespace: str,
    name: str,
    seconds: float,
    *,
    with_nodes: bool,
    image: str = "",
    again: str = "",
) -> None:
    """Until the control plane is available and, if wanted, the release is rolled out and every pool has its nodes."""
    cluster = Watched(HOSTEDCLUSTERS, namespace, name)
    pools = Watched(NODEPOOLS, namespace)

    def judge() -> tuple[bool, str]:
        return cluster_progress(
            _still_there(cluster, "hosted cluster"),
            [pool for pool in pools.objects.values() if pool["spec"].get("clusterName") == name],
            with_nodes=with_nodes,
            image=image,
        )

    def trouble() -> str:
        found = cluster.one()
        mine = [pool for pool in pools.objects.values() if pool["spec"].get("clusterName") == name]
        told = [health.cluster_trouble(found) if found else "", *map(machine_messages.trouble_of, mine)]
        return next(filter(None, told), "")

    only = "" if with_nodes else " --control-plane"
    again = again or f"{prog} wait cluster {name} -n {namespace}{only} goes on waiting"
    await wait_until(
        client,
        [cluster, pools] if with_nodes else [cluster],
        judge,
        late=f"hosted cluster {namespace}/{name} is not ready",
        seconds=seconds,
        hint=f"{prog} status {name} -n {namespace} shows every condition; {again}",
        again=again,
        trouble=trouble,
    )


def cluster_progress(cluster: Object, pools: list[Object], *, with_nodes: bool, image: str) -> tuple[bool, str]:
    """Whether a cluster is ready, and how far it is.

    A rollout ends on nodes (network, DNS, proxy), so a wait for the control plane alone must not ask for it.
    """
    lines = [health.control_plane_line(cluster)]
    done = health.is_true(cluster, conditions.AVAILABLE) and (health.at_its_version(cluster) or not with_nodes)
    if image:
        done = done and health.control_plane_image(cluster) == image
    if with_nodes:
        pools = sorted(pools, key=lambda pool: str(pool["metadata"]["name"]))
        lines += [machine_messages.pool_line(pool) for pool in pools]
        done = done and all(health.pool_ready(pool) for pool in pools)
    return done, "; ".join(lines)


async def wait_pool(
    client: Client, prog: str, namespace: str, name: str, seconds: float, *, version: str = "", again: str = ""
) -> None:
    """Until the pool has as many nodes as asked for and, if named, has reached the version."""
    pool = Watched(NODEPOOLS, namespace, name)
    cluster = (await client.get(NODEPOOLS, name, namespace))["spec"].get("clusterName", "")
    again = again or f"{prog} wait nodepool {name} -n {namespace} goes on waiting"
    await wait_until(
        client,
        [pool],
        lambda: pool_progress(_still_there(pool, "node pool"), version),
        late=f"node pool {namespace}/{name} is not ready",
        seconds=seconds,
        hint=f"{prog} status {cluster} -n {namespace} shows its machines and what they wait for; {again}",
        again=again,
        trouble=lambda: machine_messages.trouble_of(_still_there(pool, "node pool")),
    )


def pool_progress(pool: Object, version: str) -> tuple[bool, str]:
    have, wanted = health.nodes(pool)
    done = health.pool_ready(pool) and (wanted is None or have == wanted)
    reached = str((pool.get("status") or {}).get("version") or "")
    if version and reached != version:
        return False, f"{machine_messages.pool_line(pool)}, version {reached or 'unknown'} on the way to {version}"
    return done, machine_messages.pool_line(pool)


async def wait_gone(
    client: Client,
    what: str,
    namespace: str,
    name: str,
    seconds: float,
    *,
    hint: str,
    again: str,
    destroyed_is_enough: bool = False,
) -> None:
    """Until the object no longer exists; one that was made anew under its name does not count."""
    watched = Watched(KINDS[what], namespace, name)
    called, uid = f"{what} {namespace}/{name}", ""

    def judge() -> tuple[bool, str]:
        nonlocal uid
        found = watched.one()
        uid = uid or (found["metadata"]["uid"] if found else "")
        if found is None or found["metadata"]["uid"] != uid:
            return True, f"{called} is gone"
        if destroyed_is_enough and _only_waits(found):
            return True, f"{called} is destroyed and waits for its grace period"
        return False, deletion_line(called, found)

    await wait_until(client, [watched], judge, late=f"{called} is not gone", seconds=seconds, hint=hint, again=again)


def deletion_line(called: str, obj: Object) -> str:
    """What holds an object that is to go."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp"):
        return f"{called} is not being deleted"
    holds = ", ".join(meta.get("finalizers") or []) or "nothing"
    item = health.condition(obj, conditions.CLOUD_RESOURCES_DESTROYED)
    why = f"; {health.explain(item)}" if item and item.get("status") != "True" else ""
    return f"{called} is being deleted, held by {holds}{why}"


def _only_waits(cluster: Object) -> bool:
    """Destroyed, and kept for a grace period that someone asked for."""
    asked = names.ANNOTATION_DESTROY_GRACE in (cluster["metadata"].get("annotations") or {})
    return asked and health.condition(cluster, conditions.HOSTED_CLUSTER_DESTROYED) is not None


def _still_there(watched: Watched, what: str) -> Object:
    found = watched.one()
    if found is None:
        name = str(watched.fields).partition("=")[2]
        raise HcpError(f"{what} {watched.namespace}/{name} is gone: it was deleted meanwhile", exit_code=NOT_FOUND)
    return found
