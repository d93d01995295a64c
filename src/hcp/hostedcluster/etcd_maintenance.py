"""Looking after the etcd of every hosted cluster: alarms are noticed and healed, freed room is given back by date.

No watch tells how full an etcd is, so one member is asked once a minute; that is one small request and no write. It
runs beside the passes over HostedClusters, and what was found is handed to the next pass.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.controlplane import etcd
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import Params
from hcp.errors import HcpError
from hcp.etcd import maintenance
from hcp.etcd.client import Etcd, Identity, Member
from hcp.runtime import metrics, schedule
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Controller, Result
from hcp.runtime.workloads import quorum

log = logging.getLogger(__name__)
LOOK, LOOK_FULL = 60.0, 15.0
PATIENCE = 120.0
NEVER = "Never"
Where = Callable[[Params, int | None], str]

SIZE = metrics.Gauge("hcp_etcd_database_bytes", "File size of the fullest etcd member.", ["namespace", "name"])
USED = metrics.Gauge("hcp_etcd_database_in_use_bytes", "Live data in that file.", ["namespace", "name"])
QUOTA = metrics.Gauge("hcp_etcd_quota_bytes", "Size at which etcd refuses writes.", ["namespace", "name"])
DEFRAGMENTED = metrics.Counter("hcp_etcd_defragmentations_total", "Members defragmented.", ["namespace", "name"])


def plan_of(p: Params) -> tuple[schedule.Schedule | None, str]:
    """When this cluster's etcd is defragmented, and what is wrong with the annotation if something is."""
    text = p.annotations.get(names.ANNOTATION_ETCD_DEFRAG_SCHEDULE, "").strip()
    problem = ""
    if text == NEVER:
        return None, ""
    if text:
        try:
            return schedule.parse(text), ""
        except HcpError as exc:
            problem = f"annotation {names.ANNOTATION_ETCD_DEFRAG_SCHEDULE}: {exc}"
    # At night, and not all clusters in the same minute.
    spread = zlib.crc32(p.namespace.encode())
    return schedule.parse(f"{spread % 60} {2 + spread // 60 % 3} * * *"), problem


def member_url(p: Params, index: int | None) -> str:
    """One member, or whichever the Service chooses."""
    host = etcd.CLIENT if index is None else f"etcd-{index}.{etcd.DISCOVERY}"
    return f"https://{host}.{p.namespace}.svc:2379"


@dataclass
class State:
    """What is known of one etcd. `full` is None before the first look, then empty or what to tell."""

    full: str | None = None
    due: dt.datetime | None = None
    plan: schedule.Schedule | None = None


@dataclass(frozen=True)
class Wanted:
    """What the last pass over the HostedCluster knew."""

    params: Params
    identity: Identity
    cluster: dict[str, Any]

    def same(self, other: Wanted | None) -> bool:
        return other is not None and self.identity == other.identity


class EtcdMaintenance:
    """One key per hosted cluster; `where` gives the address of a member."""

    def __init__(self, ctx: OperatorContext, where: Where = member_url) -> None:
        self._ctx = ctx
        # Told which HostedCluster to look at again, once somebody wants to know.
        self.on_change: Callable[[str], None] = lambda key: None
        self._where = where
        # From outside the management cluster there is no way to the pods, unless somebody gives one.
        self._reachable = ctx.inside or where is not member_url
        self._states: dict[str, State] = {}
        self._wanted: dict[str, Wanted] = {}
        self.controller = Controller("etcd", self.reconcile, workers=4)

    def state(self, key: str) -> State:
        return self._states.setdefault(key, State())

    def forget(self, key: str) -> None:
        self._states.pop(key, None)
        if self._wanted.pop(key, None) is not None:
            namespace, _, name = key.partition("/")
            for gauge in (SIZE, USED, QUOTA):
                gauge.remove(namespace=namespace, name=name)

    def update(
        self,
        p: Params,
        cluster: dict[str, Any],
        client: dict[str, Any] | None,
        workload: Mapping[str, Any] | None,
        voters: int = 0,
    ) -> None:
        """Take over what a pass knows; the first look follows when the members are up."""
        if not self._reachable or client is None or not quorum(workload, voters):
            return
        key, data = p.key, secret_data(client)
        identity = Identity(data["ca.crt"], data["etcd-client.crt"], data["etcd-client.key"])
        wanted, before = Wanted(p, identity, cluster), self._wanted.get(key)
        self._wanted[key] = wanted
        state = self.state(key)
        plan, _ = plan_of(p)
        if plan != state.plan or state.due is None:
            state.plan, state.due = plan, plan.after(dt.datetime.now(dt.UTC)) if plan else None
        if not wanted.same(before):
            self.controller.enqueue(key)

    async def reconcile(self, key: str) -> Result | None:
        """One look, and what follows from it."""
        wanted = self._wanted.get(key)
        if wanted is None:
            return None
        state, now = self.state(key), dt.datetime.now(dt.UTC)
        due = state.due is not None and now >= state.due
        try:
            async with asyncio.timeout(PATIENCE):
                first = await self._ask(wanted, None)
                self._measure(key, first)
                if first.full:
                    await self._heal(key, wanted, first)
                else:
                    self._tell(key, "")
                    if due or maintenance.pressing(first):
                        await self._defragment(key, wanted, await self._members(wanted), due=due)
        except (HcpError, TimeoutError) as exc:
            log.info("etcd cannot be looked at", extra={"key": key, "error": str(exc) or "no answer in time"})
        if due and state.plan is not None:
            state.due = state.plan.after(now)
        return Result(LOOK_FULL if state.full else LOOK)

    async def _heal(self, key: str, wanted: Wanted, first: Member) -> None:
        """A full etcd refuses writes until history is dropped, its room is given back and the alarm is ended."""
        quota = f"{first.quota / 1024**3:.2g} GiB"
        if not self.state(key).full:
            self._tell(key, f"etcd has reached its quota of {quota} and refuses writes; it is being compacted")
            self._event(wanted, "Warning", "EtcdNoSpace", f"etcd has reached its quota of {quota} and refuses writes")
        async with Etcd(first.url, wanted.identity) as etcd_member:
            await etcd_member.compact(first.revision)
        await self._defragment(key, wanted, await self._members(wanted), due=True)
        members = await self._members(wanted)
        if not maintenance.has_room(members):
            self._tell(
                key,
                f"etcd has reached its quota of {quota} and refuses writes; "
                f"{maintenance.in_use(members)} of it is live data: "
                "delete objects in the hosted cluster, the rest follows by itself",
            )
            return
        async with Etcd(first.url, wanted.identity) as etcd_member:
            await etcd_member.disarm()
        self._tell(key, "")
        self._event(wanted, "Normal", "EtcdHealed", "etcd was compacted and takes writes again")

    async def _defragment(self, key: str, wanted: Wanted, members: list[Member], *, due: bool) -> None:
        """One member after the other; whoever does not come back stops the rest."""
        namespace, _, name = key.partition("/")
        for chosen in maintenance.order(members, due=due):
            async with Etcd(chosen.url, wanted.identity) as one:
                await one.defragment()
                after = await one.status()
            DEFRAGMENTED.inc(namespace=namespace, name=name)
            freed = round((chosen.size - after.size) / maintenance.MIB)
            log.info("etcd member defragmented", extra={"key": key, "member": chosen.url, "freed_mib": freed})
            self._measure(key, after)

    async def _members(self, wanted: Wanted) -> list[Member]:
        """All of them. One that is away stops this: to stop another one beside it could cost the quorum."""
        return [await self._ask(wanted, index) for index in range(wanted.params.members)]

    async def _ask(self, wanted: Wanted, index: int | None) -> Member:
        async with Etcd(self._where(wanted.params, index), wanted.identity) as one:
            return await one.status()

    def _measure(self, key: str, seen: Member) -> None:
        namespace, _, name = key.partition("/")
        for gauge, value in ((SIZE, seen.size), (USED, seen.used), (QUOTA, seen.quota)):
            gauge.set(value, namespace=namespace, name=name)

    def _tell(self, key: str, full: str) -> None:
        state = self.state(key)
        if state.full != full:
            changed = bool(state.full) or bool(full)
            state.full = full
            if changed:
                self.on_change(key)

    def _event(self, wanted: Wanted, kind: str, reason: str, message: str) -> None:
        self._ctx.events.event(wanted.cluster, kind, reason, message)
