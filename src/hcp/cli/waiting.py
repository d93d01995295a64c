"""Waiting for hosted clusters and node pools; used by `create --wait`, `wait`, `scale --wait` and `upgrade --wait`."""

from __future__ import annotations

from typing import Any

from hcp.cli import health
from hcp.cli.progress import wait_until
from hcp.kube import Client
from hcp.kube.resources import HOSTEDCLUSTERS, NODEPOOLS


async def pools_of(client: Client, namespace: str, cluster: str) -> list[dict[str, Any]]:
    found = await client.list(NODEPOOLS, namespace)
    return [pool for pool in found if pool["spec"].get("clusterName") == cluster]


async def wait_cluster(
    client: Client, prog: str, namespace: str, name: str, seconds: float, *, with_nodes: bool, image: str = ""
) -> None:
    """Until the control plane is available and, if wanted, the release is rolled out and every pool has its nodes.

    A rollout ends on nodes (network, DNS, proxy), so a wait for the control plane alone must not ask for it.
    """

    async def look() -> tuple[bool, str]:
        cluster = await client.get(HOSTEDCLUSTERS, name, namespace)
        lines = [health.control_plane_line(cluster)]
        done = health.is_true(cluster, "Available") and (health.rolled_out(cluster) or not with_nodes)
        if image:
            done = done and health.control_plane_image(cluster) == image
        if with_nodes:
            pools = await pools_of(client, namespace, name)
            lines += [health.pool_line(pool) for pool in pools]
            done = done and all(health.pool_ready(pool) for pool in pools)
        return done, "; ".join(lines)

    await wait_until(
        look,
        late=f"hosted cluster {namespace}/{name} is not ready",
        seconds=seconds,
        hint=f"{prog} status {name} -n {namespace} shows every condition; "
        f"{prog} wait cluster {name} -n {namespace} goes on waiting",
    )


async def wait_pool(client: Client, prog: str, namespace: str, name: str, seconds: float, *, version: str = "") -> None:
    """Until the pool has as many nodes as asked for and, if named, has reached the version."""

    async def look() -> tuple[bool, str]:
        pool = await client.get(NODEPOOLS, name, namespace)
        have, wanted = health.nodes(pool)
        done = health.pool_ready(pool) and (wanted is None or have == wanted)
        reached = str((pool.get("status") or {}).get("version") or "")
        if version and reached != version:
            return False, f"{health.pool_line(pool)}, version {reached or 'unknown'} on the way to {version}"
        return done, health.pool_line(pool)

    cluster = (await client.get(NODEPOOLS, name, namespace))["spec"].get("clusterName", "")
    await wait_until(
        look,
        late=f"node pool {namespace}/{name} is not ready",
        seconds=seconds,
        hint=f"{prog} status {cluster} -n {namespace} shows its machines and what they wait for",
    )


async def wait_gone(client: Client, what: str, namespace: str, name: str, seconds: float, hint: str) -> None:
    """Until the object no longer exists."""
    resource = HOSTEDCLUSTERS if what == "hosted cluster" else NODEPOOLS

    async def look() -> tuple[bool, str]:
        found = await client.get_or_none(resource, name, namespace)
        if found is None:
            return True, f"{what} {namespace}/{name} is gone"
        meta = found["metadata"]
        if not meta.get("deletionTimestamp"):
            return False, f"{what} {namespace}/{name} is not being deleted"
        holds = ", ".join(meta.get("finalizers") or []) or "nothing"
        item = health.condition(found, "CloudResourcesDestroyed")
        why = f"; {health.explain(item)}" if item and item.get("status") != "True" else ""
        return False, f"{what} {namespace}/{name} is being deleted, held by {holds}{why}"

    await wait_until(look, late=f"{what} {namespace}/{name} is not gone", seconds=seconds, hint=hint)
