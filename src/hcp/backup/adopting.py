"""Taking over machines that run on an external infra cluster, without touching one of them.

Cluster API is told what it knew, from the leaves up: templates, the provider's machines, sets, machines. A set does
nothing while it belongs to no MachineDeployment, and that comes last, made by the operator for the NodePool. By then
everything has Cluster API's finalizer: it knows all machines, so that none is missing and made a second time.

Every step may be done twice. Nothing is written to the infra cluster here.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.backup import machines
from hcp.backup.machines import Found
from hcp.backup.objects import Kept
from hcp.errors import HcpError
from hcp.ignition.document import document
from hcp.kube import Client, ClusterConfig, untrusted_kubeconfig
from hcp.kube.errors import AlreadyExists, NotFound
from hcp.kube.resources import MACHINES, MACHINESETS, NODEPOOLS, VIRTUALMACHINES, Resource, resource_for
from hcp.nodepool.secrets import USER_DATA_PREFIX, user_data_secret

Object = dict[str, Any]
# As Cluster API's managers called themselves before they applied: such fields they give up for what they apply.
_MANAGER = "manager"
_FINALIZERS = {MACHINES: "machine.cluster.x-k8s.io", MACHINESETS: "cluster.x-k8s.io/machineset"}
# Valid, and asks for nothing: what a machine boots with is read at its first start only.
_NOTHING = json.dumps(document())


@dataclass(frozen=True)
class Plan:
    """What becomes of the machines of a cluster."""

    pools: list[Found] = field(default_factory=list)
    # VMs of the cluster that nobody knows: made after the backup, or of pools that are made anew.
    unknown: list[str] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        return {name for one in self.pools for name in one.names}


async def look(client: Client, kept: Kept) -> Plan:
    """Which machines are there to be taken over, of pools that do not exist yet. Nothing is changed."""
    where = machines.place(kept.cluster, kept.pools, kept.hosted)
    if where is None:
        return Plan()
    running = await _running(kept, where)
    new = [key for key in where.pools if await _missing(client, key)]
    pools = machines.choose(kept.machines, new, running)
    known = {name for one in pools for name in one.names}
    if len(new) < len(where.pools):  # an earlier run has made some: their machines are nobody's business here
        return Plan(pools)
    return Plan(pools, sorted(running - known))


async def take_over(client: Client, kept: Kept, found: Found) -> None:
    """Everything of one pool, in an order in which nobody misses anything."""
    pool = next(one for one in kept.pools if one["metadata"]["name"] == found.pool.partition("/")[2])
    for one in found.templates:
        await _create(client, one)
    for name in sorted({machines.user_data_of(one) for one in (*found.sets, *found.machines)}):
        await _create(client, _stand_in(kept, pool, name))
    for one in found.vms:
        await _create(client, one)
    sets = {one["metadata"]["name"]: await _create(client, one) for one in found.sets}
    for one in found.machines:
        await _create(client, _owned(one, sets[machines.set_of(one)]))


def missed(found: Found, seen: Mapping[Resource, Mapping[str, Object]]) -> list[str]:
    """Sets and machines that Cluster API has not taken notice of yet."""
    wanted = {MACHINESETS: found.sets, MACHINES: found.machines}
    return [
        f"{one['kind']} {one['metadata']['name']}"
        for resource, finalizer in _FINALIZERS.items()
        for one in wanted[resource]
        if finalizer not in (at(seen[resource].get(one["metadata"]["name"]), "metadata.finalizers") or [])
    ]


def moved(kept: Kept, live: Mapping[str, Any]) -> bool:
    """Whether nodes look for the API where it is not any more: by another name, or by an address that changed."""
    now = at(live, "status.controlPlaneEndpoint") or {}
    return kept.endpoint != (now.get("host"), now.get("port"))


async def _running(kept: Kept, where: machines.Place) -> set[str]:
    """VMs with the mark of this cluster: a namespace of an infra cluster may be that of several."""
    selector = f"{names.LABEL_INFRA_ID}={where.infra_id}"
    async with Client(_infra(kept)) as infra:
        try:
            found = await infra.list(VIRTUALMACHINES, where.infra_namespace, selector)
        except NotFound:
            return set()
    return {str(one["metadata"]["name"]) for one in found if not one["metadata"].get("deletionTimestamp")}


def _infra(kept: Kept) -> ClusterConfig:
    ref = at(kept.cluster, "spec.platform.kubevirt.credentials.infraKubeConfigSecret") or {}
    name, key = ref.get("name"), str(ref.get("key") or names.KUBECONFIG_KEY)
    secrets = [one for one in kept.given if (one["kind"], one["metadata"]["name"]) == ("Secret", name)]
    text = str(at(secrets[0], "data", {}).get(key) or "") if secrets else ""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise HcpError(
            "the backup holds no kubeconfig of the infra cluster", cause=f"Secret {name} with key {key} is not in it"
        )
    return untrusted_kubeconfig.load(data, "The kubeconfig of the infra cluster")


async def _missing(client: Client, key: str) -> bool:
    namespace, _, name = key.partition("/")
    return await client.get_or_none(NODEPOOLS, name, namespace) is None


async def _create(client: Client, wanted: Object) -> Object:
    try:
        return await client.create(wanted, manager=_MANAGER)
    except AlreadyExists:
        return await client.get(resource_for(wanted), wanted["metadata"]["name"], wanted["metadata"]["namespace"])


def _owned(machine: Object, owner: Object) -> Object:
    reference = {
        "apiVersion": MACHINESETS.api_version,
        "kind": MACHINESETS.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**machine, "metadata": {**machine["metadata"], "ownerReferences": [reference]}}


def _stand_in(kept: Kept, pool: Object, name: str) -> Object:
    """The provider wants the Secret that a machine booted with to exist. The operator fills the one it still uses."""
    target = name.removeprefix(f"{USER_DATA_PREFIX}{pool['metadata']['name']}-")
    made = user_data_secret(kept.hosted, pool, target, kept.cluster["spec"]["infraID"], _NOTHING)
    return {**made, "metadata": {**made["metadata"], "name": name}}
