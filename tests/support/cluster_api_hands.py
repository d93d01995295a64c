"""What Cluster API and machines do for pools, where a test has neither: Machines follow sizes, Nodes follow Machines.

Which Machine goes is decided as a MachineSet does it: marked ones first. Pods on a Node run as soon as they are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.guest.nodes import node_patch, provider_id
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.kube.errors import ApiError, NotFound

Object = dict[str, Any]
MARK = "cluster.x-k8s.io/delete-machine"
API = "cluster.x-k8s.io/v1beta1"


class Hands:
    """Follows the pools of one hosted namespace until stopped."""

    def __init__(self, management: Client, guest: Client, ns: str, pools: dict[str, Object]) -> None:
        self._management, self._guest, self._ns = management, guest, ns
        # By name: the NodePool, which says how its Nodes look.
        self.pools = pools
        # Pools whose machines never become nodes.
        self.stuck: set[str] = set()
        self.ended: list[str] = []
        self._number = itertools.count(1)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            found = (await asyncio.gather(self._task, return_exceptions=True))[0]
            assert isinstance(found, asyncio.CancelledError), found

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(NotFound, ApiError):
                for name in list(self.pools):
                    await self._pool(name)
                await self._kubelets()
            await asyncio.sleep(0.2)

    async def machines(self, pool: str) -> list[Object]:
        found = await self._management.list(k.MACHINES, self._ns)
        return [one for one in found if one["metadata"]["name"].startswith(f"{pool}-")]

    async def _pool(self, name: str) -> None:
        live = await self._management.get(k.MACHINEDEPLOYMENTS, name, self._ns)
        owner = await self._set_of(live)
        machines, wanted = await self.machines(name), int(live["spec"]["replicas"])
        for _ in range(wanted - len(machines)):
            await self._make(live, owner)
        going = sorted(machines, key=lambda one: MARK not in annotations_of(one))
        for machine in going[: max(0, len(machines) - wanted)]:
            await self._end(machine["metadata"]["name"])

    async def _set_of(self, live: Object) -> Object:
        name = f"{live['metadata']['name']}-set"
        known = await self._management.get_or_none(k.MACHINESETS, name, self._ns)
        if known is not None:
            return known
        spec = {key: live["spec"][key] for key in ("clusterName", "selector", "template")}
        return await self._management.create(
            {
                "apiVersion": API,
                "kind": "MachineSet",
                "metadata": {"name": name, "namespace": self._ns, "ownerReferences": [_owner(live)]},
                "spec": {**spec, "replicas": 0},
            }
        )

    async def _make(self, live: Object, owner: Object) -> None:
        pool = live["metadata"]["name"]
        name = f"{pool}-{next(self._number)}"
        template = live["spec"]["template"]
        labels = template["metadata"]["labels"]
        metadata = {"name": name, "namespace": self._ns, "labels": labels, "ownerReferences": [_owner(owner)]}
        spec = {**template["spec"], "providerID": provider_id(name)}
        await self._management.create({"apiVersion": API, "kind": "Machine", "metadata": metadata, "spec": spec})
        if pool in self.stuck:
            return
        await self._join(name, pool)
        reference = {"apiVersion": "v1", "kind": "Node", "name": name}
        await self._management.patch(
            k.MACHINES, name, self._ns, {"status": {"nodeRef": reference}}, subresource="status"
        )

    async def _join(self, name: str, pool: str) -> None:
        given = self.pools[pool]["spec"]
        compute = at(given, "platform.kubevirt.compute")
        size = {"cpu": str(compute["cores"]), "memory": compute["memory"], "pods": "110", "ephemeral-storage": "20Gi"}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}
        made = await self._guest.create(node)
        # What our own controller makes of it; besides, the mark of a node that is not ready goes.
        made["spec"]["taints"] = []
        patch = node_patch(made, pool, given.get("nodeLabels") or {}, given.get("taints") or [])
        assert patch is not None
        patch["spec"].setdefault("taints", None)
        about = {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": self._ns}
        patch["metadata"]["annotations"] |= about
        await self._guest.patch(k.NODES, name, None, patch)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        status = {"capacity": size, "allocatable": size, "conditions": [ready]}
        await self._guest.patch(k.NODES, name, None, {"status": status}, subresource="status")

    async def _end(self, name: str) -> None:
        self.ended.append(name)
        for pod in await self._guest.list(k.PODS):
            if at(pod, "spec.nodeName") == name:
                meta = pod["metadata"]
                await self._guest.delete(k.PODS, meta["name"], meta["namespace"], grace=0, missing_ok=True)
        await self._management.delete(k.MACHINES, name, self._ns, missing_ok=True)
        await self._guest.delete(k.NODES, name, missing_ok=True)

    async def _kubelets(self) -> None:
        for pod in await self._guest.list(k.PODS):
            meta = pod["metadata"]
            if meta.get("deletionTimestamp"):
                await self._guest.delete(k.PODS, meta["name"], meta["namespace"], grace=0, missing_ok=True)
            elif at(pod, "spec.nodeName") and at(pod, "status.phase") == "Pending":
                await self._guest.patch(
                    k.PODS, meta["name"], meta["namespace"], {"status": {"phase": "Running"}}, subresource="status"
                )


def _owner(live: Object) -> Object:
    meta = live["metadata"]
    words = {"apiVersion": API, "kind": live.get("kind") or "MachineDeployment", "controller": True}
    return {**words, "name": meta["name"], "uid": meta["uid"]}
