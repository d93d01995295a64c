"""Machines whose infra node is drained: moved while they run, else drained in the guest and replaced.

Instances, Machines and pools are followed anyway. KubeVirt's migrations are followed in the namespaces where something
moves, as long as it does: where nothing is drained, this costs nothing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import pause
from hcp.api.names import ANNOTATION_EVACUATION, MARK_LEAVES
from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.kube.errors import AlreadyExists, Forbidden, NotFound
from hcp.kube.resources import HOSTEDCLUSTERS, MACHINEDEPLOYMENTS, MACHINES, NODEPOOLS, VMI_MIGRATIONS
from hcp.kubevirt import evacuation_plan, launchers
from hcp.kubevirt.evacuation_plan import Plan
from hcp.kubevirt.session import InfraCaches, Session
from hcp.kubevirt.sessions import Sessions
from hcp.runtime import Controller, Informer, Result, hibernation
from hcp.runtime.context import OperatorContext
from hcp.runtime.pools import pool_of_made, pools_of
from hcp.runtime.store import key_of

Object = dict[str, Any]
NOT_PERMITTED = "the owner of the infra cluster does not let us move machines"


class Evacuations:
    """One key per machine, ``hosted namespace/name``; remembers how far each is."""

    def __init__(self, ctx: OperatorContext, sessions: Sessions) -> None:
        self._ctx = ctx
        self._sessions = sessions
        self.controller = sessions.controller("evacuations", self._reconcile)
        self._machines: Informer = ctx.informers.get(MACHINES)
        self._deployments: Informer = ctx.informers.get(MACHINEDEPLOYMENTS)
        self._pools: Informer = ctx.informers.get(NODEPOOLS)
        self._clusters: Informer = ctx.informers.get(HOSTEDCLUSTERS)
        self._machines.add_index("pool", pool_of_made)
        # Told which pool to look at again, once somebody wants to know.
        self.on_change: Callable[[str], None] = lambda pool: None
        # By pool, then by machine.
        self._plans: dict[str, dict[str, Plan]] = {}
        self._pool_of: dict[str, str] = {}
        # KubeVirt's migrations by hosted namespace, while something moves there; None where they are not for us.
        self._migrations: dict[str, Informer | None] = {}

    def wire(self) -> Controller:
        """Look again when an instance, its machine, another one of the pool, the pool or its cluster changes."""
        self._follow(InfraCaches.shared(self._ctx.informers).instances)
        self.controller.watch(self._machines, self._of_machine)
        self.controller.watch(self._pools, lambda pool: self._of_pool(key_of(pool)))
        self.controller.watch(self._clusters, self._of_cluster)
        self._sessions.on_begin(self._begin)
        self._ctx.closers.append(self.close)
        return self.controller

    def plans(self, pool: str) -> Mapping[str, Plan]:
        """How far the machines of a pool are that have to leave their infra node, by name."""
        return self._plans.get(pool, {})

    async def close(self) -> None:
        for hosted in list(self._migrations):
            await self._leave(hosted)

    def _follow(self, instances: Informer) -> None:
        def listener(old: Object | None, new: Object | None) -> None:
            if not (evacuation_plan.leaves(old) or evacuation_plan.leaves(new)):
                return
            metadata = (new or old or {})["metadata"]
            for session in self._sessions.with_machines_in(metadata.get("namespace", "")):
                self.controller.enqueue(f"{session.hosted_namespace}/{metadata['name']}")

        instances.add_listener(listener)

    def _begin(self, session: Session) -> None:
        if session.unmanaged:
            return
        if session.infra.external:
            self._follow(session.caches.instances)
        leaving = {one["metadata"]["name"] for one in session.instance_list() if evacuation_plan.leaves(one)}
        marked = {one["metadata"]["name"] for one in self._machines.list(session.hosted_namespace) if _marked(one)}
        for name in leaving | marked:
            self.controller.enqueue(f"{session.hosted_namespace}/{name}", fresh=False)

    def _of_machine(self, machine: Object) -> Iterable[str]:
        """Its own key, and those of the others in its pool that may wait for it."""
        for pool in pool_of_made(machine):
            yield from self._of_pool(pool)
        if _marked(machine):
            yield key_of(machine)

    def _of_pool(self, pool: str) -> Iterable[str]:
        return [key for key, of in self._pool_of.items() if of == pool] if pool in self._plans else []

    def _of_cluster(self, cluster: Object) -> Iterable[str]:
        for pool in pools_of(self._pools, cluster["metadata"]["namespace"], cluster["metadata"]["name"]):
            yield from self._of_pool(key_of(pool))

    async def _reconcile(self, key: str) -> Result | None:
        hosted, _, name = key.partition("/")
        session, machine = self._sessions.get(hosted), self._machines.get(name, hosted)
        if session is None or session.unmanaged:
            await self._forget(key)
            return None
        pods = session.caches.launchers
        if not session.caches.instances.synced or (pods is not None and not pods.synced):
            return Result(0.2)
        instance = session.caches.instances.get(name, session.infra.namespace)
        if instance is not None and not session.owns(instance):
            instance = None
        pool = self._pools.get_key(next(iter(pool_of_made(machine)), "")) if machine is not None else None
        there = machine is not None and pool is not None and not pool["metadata"].get("deletionTimestamp")
        if not there or instance is None or not evacuation_plan.leaves(instance):
            await self._over(key, machine, pool, instance)
            return None
        assert machine is not None
        assert pool is not None
        now = dt.datetime.now(dt.UTC)
        self._pool_of[key] = key_of(pool)
        plan = await self._plan(session, pool, machine, instance, now)
        if plan is None:
            return Result(0.2)
        try:
            plan = await self._carry_out(session, pool, machine, instance, plan)
        except NotFound:
            return None  # it went meanwhile; its change is on the way
        self._tell(key, key_of(pool), name, plan)
        return Result((plan.until - now).total_seconds() + 1) if plan.until else None

    async def _plan(
        self, session: Session, pool: Object, machine: Object, instance: Object, now: dt.datetime
    ) -> Plan | None:
        """None while what it depends on is not known yet."""
        if any(pause.parse(at(owner, "spec.pausedUntil"), now).paused for owner in (pool, session.cluster)):
            return evacuation_plan.held(instance, "reconciliation is paused")
        if hibernation.resting(self._clusters.get_key(key_of(dict(session.cluster)))):
            return evacuation_plan.held(instance, "the cluster sleeps or wakes up")
        able, why = evacuation_plan.movable(instance)
        if able is None:
            return evacuation_plan.held(instance, "KubeVirt has not said yet whether it can move")
        if machine["metadata"].get("deletionTimestamp"):
            able, why = False, why or "its machine goes"
        if able:
            able, why = self._wanted(session, pool, instance)
        if able:
            informer = await self._followed(session)
            if informer is not None and not informer.synced:
                return None
            if informer is not None:
                return evacuation_plan.moving(instance, informer.list(session.infra.namespace), now)
            why = NOT_PERMITTED
        return self._replacing(pool, machine, instance, why)

    def _wanted(self, session: Session, pool: Object, instance: Object) -> tuple[bool, str]:
        """Whether a machine that could move shall: by its owner's word, else where its address follows it."""
        cluster = self._clusters.get_key(key_of(dict(session.cluster)))
        asked = {**annotations_of(cluster), **annotations_of(pool)}.get(ANNOTATION_EVACUATION, "")
        if asked == evacuation_plan.REPLACE:
            return False, f"annotation {ANNOTATION_EVACUATION} says so"
        pod = launchers.launcher(instance, session.launcher_list() or ())
        if asked == evacuation_plan.MOVE or launchers.address_follows(instance, pod):
            return True, ""
        return False, evacuation_plan.ADDRESS_STAYS

    def _replacing(self, pool: Object, machine: Object, instance: Object, why: str) -> Plan:
        deployment = self._deployments.get(pool["metadata"]["name"], machine["metadata"]["namespace"])
        machines = self._machines.by_index("pool", key_of(pool))
        return evacuation_plan.replacing(instance, why, machine, pool, deployment, machines)

    async def _carry_out(self, session: Session, pool: Object, machine: Object, instance: Object, plan: Plan) -> Plan:
        if plan.make is not None:
            name = machine["metadata"]["name"]
            try:
                made = await session.infra.client.create(plan.make)
            except AlreadyExists:
                return plan  # asked for a moment ago; its watch brings the next pass
            except Forbidden:
                await self._leave(session.hosted_namespace)
                self._migrations[session.hosted_namespace] = None
                plan = self._replacing(pool, machine, instance, NOT_PERMITTED)
            else:
                informer = self._migrations.get(session.hosted_namespace)
                if informer is not None:
                    informer.observe(made)
                self._ctx.events.event(pool, "Normal", "MigratingNode", f"Node {name} {plan.message}")
        metadata, client = machine["metadata"], self._ctx.client
        if plan.mark:
            body = evacuation_plan.mark(instance, machine)
            made = await client.patch(MACHINES, metadata["name"], metadata["namespace"], body)
            self._machines.observe(made)
        if plan.delete:
            await client.delete(MACHINES, metadata["name"], metadata["namespace"], uid=metadata["uid"], missing_ok=True)
        if plan.mark or plan.delete:
            self._ctx.events.event(pool, "Warning", "ReplacingNode", f"Node {metadata['name']} {plan.message}")
        return plan

    async def _over(self, key: str, machine: Object | None, pool: Object | None, instance: Object | None) -> None:
        """It has left, or may stay after all."""
        body = evacuation_plan.unmark(machine) if machine is not None else None
        if machine is not None and body is not None:
            metadata = machine["metadata"]
            with contextlib.suppress(NotFound):
                made = await self._ctx.client.patch(MACHINES, metadata["name"], metadata["namespace"], body)
                self._machines.observe(made)
        plan = self._plans.get(self._pool_of.get(key, ""), {}).get(key.partition("/")[2])
        if plan is not None and pool is not None and plan.reason in (c.MIGRATING, c.MIGRATION_FAILED):
            where = at(instance, "status.nodeName")
            if where and not at(instance, "status.evacuationNodeName"):
                name = key.partition("/")[2]
                message = f"The virtual machine of node {name} runs on infra node {where} now"
                self._ctx.events.event(pool, "Normal", "NodeMigrated", message)
        await self._forget(key)

    def _tell(self, key: str, pool: str, name: str, plan: Plan) -> None:
        before = self._plans.get(pool, {}).get(name)
        self._plans.setdefault(pool, {})[name] = plan
        self._pool_of[key] = pool
        if before is not None and (before.reason, before.message) == (plan.reason, plan.message):
            return
        if plan.reason == c.MIGRATION_FAILED:
            found = self._pools.get_key(pool)
            if found is not None:
                self._ctx.events.event(found, "Warning", "NodeMigrationFailed", f"Node {name} {plan.message}")
        self.on_change(pool)

    async def _forget(self, key: str) -> None:
        hosted, _, name = key.partition("/")
        pool = self._pool_of.pop(key, None)
        if pool is not None:
            plans = self._plans.get(pool, {})
            plans.pop(name, None)
            if not plans:
                self._plans.pop(pool, None)
            self.on_change(pool)
        if not any(one.partition("/")[0] == hosted for one in self._pool_of):
            await self._leave(hosted)

    async def _followed(self, session: Session) -> Informer | None:
        """Migrations where the machines of this cluster run; None where nobody lets us make any."""
        hosted, infra = session.hosted_namespace, session.infra
        known = self._migrations.get(hosted)
        if known is not None and known.client is not infra.client:
            await self._leave(hosted)  # its kubeconfig is another one by now
        if hosted not in self._migrations:
            # Entered before anything is awaited: passes over other machines of this cluster come along meanwhile.
            informer = self._migrations[hosted] = Informer(infra.client, VMI_MIGRATIONS, infra.namespace)

            def listener(old: Object | None, new: Object | None) -> None:
                if name := at(new or old, "spec.vmiName"):
                    self.controller.enqueue(f"{hosted}/{name}")

            informer.add_listener(listener)
            try:
                await infra.client.list(VMI_MIGRATIONS, infra.namespace)
            except (Forbidden, NotFound):
                self._migrations[hosted] = None
                return None
            except HcpError:
                del self._migrations[hosted]
                raise
            await informer.start()
        return self._migrations[hosted]

    async def _leave(self, hosted: str) -> None:
        informer = self._migrations.pop(hosted, None)
        if informer is not None:
            await informer.stop()


def _marked(machine: Object) -> bool:
    return MARK_LEAVES in annotations_of(machine)
