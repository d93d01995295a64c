"""Sick nodes: the virtual machine is restarted, and only if that does not help is the machine replaced.

Cluster API's health check says which machines are sick and makes a NodeRepair for each; here it is worked on. Whatever
changes the answer is followed: the request, the Node, the Machine, the pool, its health check.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from hcp.api import pause
from hcp.api.names import ANNOTATION_RESTARTED
from hcp.api.noderepair import HELD, RESTARTING
from hcp.api.paths import at
from hcp.kube.errors import Conflict, Forbidden, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS, MACHINEHEALTHCHECKS, MACHINES, NODEPOOLS, NODEREPAIRS, VMIS
from hcp.kubevirt import evacuation_plan, repair_plan
from hcp.kubevirt.repair_plan import Plan
from hcp.kubevirt.session import Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result, hibernation, is_true
from hcp.runtime.context import OperatorContext
from hcp.runtime.pools import pool_of_made, pools_of
from hcp.runtime.store import key_of

Object = dict[str, Any]


class Repairs:
    """Works on NodeRepairs: one key per machine, ``hosted namespace/name``."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions) -> None:
        self._ctx = ctx
        self._sessions = sessions
        self.controller = sessions.controller("node-repairs", self.reconcile)
        self._requests: Informer = ctx.informers.get(NODEREPAIRS)
        self._machines: Informer = ctx.informers.get(MACHINES)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self._checks: Informer = ctx.informers.get(MACHINEHEALTHCHECKS)
        self._requests.add_index("pool", pool_of_made)
        # Machines whose restart this process has seen, to tell when it helped.
        self._restarting: set[str] = set()

    def wire(self) -> Controller:
        """Connect the watches; nodes of guests are told of by `node_changed`."""
        controller = self.controller
        controller.watch(self._requests)
        controller.watch(self._machines, self._of_machine)
        controller.watch(self._pools, self._of_pool)
        controller.watch(self._checks, lambda check: self._of_key(*pool_of_made(check)))
        controller.watch(self._clusters, self._of_cluster)
        self._sessions.on_begin(self._begin)
        return controller

    def has(self, name: str, hosted: str) -> bool:
        return self._requests.get(name, hosted) is not None

    def node_changed(self, hosted: str, name: str) -> None:
        """A Node of this guest changed."""
        if self.has(name, hosted):
            self.controller.enqueue(f"{hosted}/{name}")

    def _begin(self, session: Session) -> None:
        """Requests that waited for the hosted cluster to be followed."""
        hosted = session.hosted_namespace
        for one in self._requests.list(hosted):
            self.controller.enqueue(f"{hosted}/{one['metadata']['name']}", fresh=False)

    def _of_machine(self, machine: Object) -> Iterable[str]:
        name, hosted = machine["metadata"]["name"], machine["metadata"]["namespace"]
        return (f"{hosted}/{name}",) if self.has(name, hosted) else ()

    def _of_pool(self, pool: Object) -> Iterable[str]:
        return self._of_key(f"{pool['metadata']['namespace']}/{pool['metadata']['name']}")

    def _of_key(self, *pools: str) -> Iterable[str]:
        for key in pools:
            for one in self._requests.by_index("pool", key):
                yield f"{one['metadata']['namespace']}/{one['metadata']['name']}"

    def _of_cluster(self, cluster: Object) -> Iterable[str]:
        for pool in pools_of(self._pools, cluster["metadata"]["namespace"], cluster["metadata"]["name"]):
            yield from self._of_pool(pool)

    async def reconcile(self, key: str) -> Result | None:
        """One pass over ``hosted namespace/machine``."""
        hosted, _, name = key.partition("/")
        session, machine = self._sessions.get(hosted), self._machines.get(name, hosted)
        if session is None or machine is None or machine["metadata"].get("deletionTimestamp"):
            self._restarting.discard(key)
            return None  # not followed yet, or going already
        pool = self._pools.get_key(next(iter(pool_of_made(machine)), ""))
        request = self._requests.get(name, hosted)
        if request is None:
            if key in self._restarting:
                self._restarting.discard(key)
                self._tell_recovered(session, pool, machine)
            return None
        if pool is None or not _is_for(request, machine) or request["metadata"].get("deletionTimestamp"):
            return None
        check = self._checks.get(pool["metadata"]["name"], hosted)
        if check is None:  # nobody judges the machine any more, nor would take the request back
            await self._ctx.client.delete(NODEREPAIRS, name, hosted, uid=request["metadata"]["uid"], missing_ok=True)
            return None
        if not session.nodes.synced or not session.caches.instances.synced:
            return Result(0.2)
        return await self._treat(session, pool, machine, request, check)

    async def _treat(
        self, session: Session, pool: Object, machine: Object, request: Object, check: Object
    ) -> Result | None:
        now = dt.datetime.now(dt.UTC)
        name = machine["metadata"]["name"]
        node = session.nodes.get(at(machine, "status.nodeRef.name") or name)
        instance = session.caches.instances.get(name, session.infra.namespace)
        if instance is not None and not session.owns(instance):
            instance = None
        paused = any(pause.parse(at(owner, "spec.pausedUntil"), now).paused for owner in (pool, session.cluster))
        why = repair_plan.held(machine, node, paused, check)
        if hibernation.resting(self._clusters.get_key(key_of(dict(session.cluster)))):
            why = "the cluster wakes up: its nodes get the time to report"
        if infra_node := evacuation_plan.leaves(instance):
            why = f"its infra node {infra_node} is drained: NodesUnderEvacuation says what is done"
        plan = Plan(HELD, why) if why else repair_plan.decide(request, machine, node, instance, now)
        if plan.phase == RESTARTING:
            self._restarting.add(key_of(machine))
        try:
            await self._carry_out(session, pool, machine, plan)
            await self._say(request, plan)
        except NotFound:
            return None  # healed or deleted meanwhile; its change is on the way
        return Result((plan.until - now).total_seconds() + 1) if plan.until else None

    async def _carry_out(self, session: Session, pool: Object, machine: Object, plan: Plan) -> None:
        metadata, client = machine["metadata"], self._ctx.client
        name, hosted = metadata["name"], metadata["namespace"]
        if plan.remember:
            body = {"uid": metadata["uid"], "annotations": {ANNOTATION_RESTARTED: plan.remember}}
            self._machines.observe(await client.patch(MACHINES, name, hosted, {"metadata": body}))
        if plan.end:
            try:
                await session.infra.client.delete(VMIS, name, session.infra.namespace, uid=plan.end, missing_ok=True)
            except Conflict:
                return  # another instance by now: it was restarted
            except Forbidden as error:
                why = f"its virtual machine cannot be restarted: {error}"
                await self._replace(pool, machine, f"the machine is replaced: {why}")
                return
            self._ctx.events.event(pool, "Warning", "RestartingNode", f"Node {name} is not healthy: {plan.message}")
        if plan.replace:
            await self._replace(pool, machine, plan.message)

    async def _replace(self, pool: Object, machine: Object, message: str) -> None:
        metadata = machine["metadata"]
        name = metadata["name"]
        await self._ctx.client.delete(MACHINES, name, metadata["namespace"], uid=metadata["uid"], missing_ok=True)
        self._ctx.events.event(pool, "Warning", "ReplacingNode", f"Node {name} is not healthy: {message}")

    async def _say(self, request: Object, plan: Plan) -> None:
        metadata = request["metadata"]
        wanted = {"phase": plan.phase, "message": plan.message[:1024]}
        if (request.get("status") or {}) != wanted:
            made = await self._ctx.client.patch(
                NODEREPAIRS, metadata["name"], metadata["namespace"], {"status": wanted}, subresource="status"
            )
            self._requests.observe(made)

    def _tell_recovered(self, session: Session, pool: Object | None, machine: Object) -> None:
        """The health check took the request back; say so if it was a restart that helped."""
        name = machine["metadata"]["name"]
        node = session.nodes.get(name)
        restarts = repair_plan.restarts_of(machine)
        if pool is None or not restarts or node is None:
            return
        if is_true(at(node, "status.conditions"), "Ready"):
            when = restarts[-1].at.strftime("%Y-%m-%dT%H:%M:%SZ")
            self._ctx.events.event(
                pool, "Normal", "NodeRecovered", f"Node {name} is healthy after its restart at {when}"
            )


def _is_for(request: Object, machine: Object) -> bool:
    """Whether a request was made for this very machine, not for one that had its name."""
    owners = request["metadata"].get("ownerReferences") or []
    return any(one.get("uid") == machine["metadata"]["uid"] for one in owners)
