"""Reading from a management cluster what a backup keeps of a hosted cluster."""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.backup import machines, objects
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import CONFIGMAPS, HOSTEDCLUSTERS, KUBEVIRTMACHINES, NODEPOOLS, SECRETS

Object = dict[str, Any]


async def collect(client: Client, namespace: str, name: str) -> list[Object]:
    """All objects, one by one by their names: whoever may make backups needs no right to list Secrets."""
    cluster = await client.get(HOSTEDCLUSTERS, name, namespace)
    refuse_what_cannot_be_kept(cluster)
    pools = [one for one in await client.list(NODEPOOLS, namespace) if one["spec"].get("clusterName") == name]
    found = [cluster, *pools]
    for wanted in sorted(objects.named(cluster, pools)):
        for resource in (SECRETS, CONFIGMAPS):
            live = await client.get_or_none(resource, wanted, namespace)
            if live is not None and _ours_to_keep(live):
                found.append(live)
    hosted = names.control_plane_namespace(namespace, name)
    for key in objects.KEYS:
        live = await client.get_or_none(SECRETS, key, hosted)
        if live is not None:
            found.append(live)
        elif key in objects.NEEDED:
            raise HcpError(
                f"hosted cluster {namespace}/{name} is not complete yet",
                cause=f"Secret {hosted}/{key} does not exist",
                hint=f"hcp wait cluster {name} -n {namespace} --control-plane waits until it is",
            )
    kept = [objects.clean(one) for one in found]
    kept[0] = objects.with_endpoint(kept[0], cluster)
    return kept + await machines_of(client, cluster, pools)


async def machines_of(client: Client, cluster: Object, pools: list[Object]) -> list[Object]:
    """What tells which VM of an external infra cluster is which machine; nothing where machines are lost anyway.

    Nothing either for whoever may not read it, such as a schedule of before: a backup without is better than none.
    """
    meta = cluster["metadata"]
    where = machines.place(cluster, pools, names.control_plane_namespace(meta["namespace"], meta["name"]))
    if where is None:
        return []
    found: list[Object] = []
    for resource in machines.RESOURCES:
        try:
            found += await client.list(resource, where.hosted)
        except (Forbidden, NotFound):
            return []
    ours = [one for one in found if machines.pool_of(one) in where.pools or one["kind"] == KUBEVIRTMACHINES.kind]
    return [machines.clean(one, objects.clean(one)) for one in ours]


def refuse_what_cannot_be_kept(cluster: Object) -> None:
    meta = cluster["metadata"]
    where = f"{meta['namespace']}/{meta['name']}"
    if meta.get("deletionTimestamp"):
        raise HcpError(f"hosted cluster {where} is being deleted")
    if at(cluster, "spec.etcd.managementType") == "Unmanaged":
        raise HcpError(
            f"hosted cluster {where} has an etcd of its owner's",
            cause="hcp takes no snapshots of what it does not run",
            hint="whoever runs that etcd looks after its backups",
        )


def _ours_to_keep(live: Object) -> bool:
    """Of a type that a restore accepts: a name may be that of something else entirely."""
    return live["kind"] != "Secret" or live.get("type", "Opaque") in objects.SECRET_TYPES


def keys_of(found: list[Object]) -> list[Object]:
    """What must not change while the snapshot is taken: it can be read with these only."""
    return [one for one in found if one["kind"] == "Secret" and one["metadata"]["name"] in objects.KEYS]
