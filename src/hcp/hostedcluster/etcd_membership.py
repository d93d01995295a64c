"""Changing the members of etcd: a lost one is replaced, and a cluster grows and shrinks with its availability policy.

Passes over HostedClusters say when something is to do, from what they watch: a member that is not ready, a number that
is not the wanted one, a change that was begun. Only then is anybody asked, step by step until it is over. What has to
be done is decided by `hcp.etcd.membership`; the StatefulSet follows the record in the next pass.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api import names
from hcp.controlplane import etcd, etcd_members
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import Params
from hcp.errors import HcpError
from hcp.etcd import membership as m
from hcp.etcd.client import Etcd, Identity, Member
from hcp.hostedcluster.etcd_maintenance import member_url
from hcp.kube.resources import CONFIGMAPS, PODS, PVCS, STATEFULSETS
from hcp.runtime.apply import apply_if_changed
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Controller, Result
from hcp.runtime.workloads import members

log = logging.getLogger(__name__)
# After a step the next one; while others have to do something; while a member is away and may come back as it is.
NEXT, SOON, LATER = 0.1, 2.0, 10.0
PATIENCE = 60.0
# No member takes as long to say how it is.
_ANSWER = 5.0
NO_MAJORITY = (
    "{} without data, and too few others for a majority: nobody can be replaced. "
    "Bring back a node or a volume of the others, or restore the cluster from a backup"
)


@dataclass(frozen=True)
class Wanted:
    """What the last pass over the HostedCluster knew."""

    params: Params
    identity: Identity
    cluster: dict[str, Any]


def busy(record: m.Record | None, desired: int, live: Mapping[str, Any] | None) -> bool:
    """Whether anybody has to be asked, from what is watched. One member alone is never helped by another one."""
    if record is None or live is None or not (live.get("spec") or {}).get("replicas"):
        return False
    if not record.settled or record.replicas != desired:
        return True
    ready, number = members(live)
    return desired > 1 and ready < number


class EtcdMembership:
    """One key per hosted cluster; `where` gives the address for clients of a member, `peer` that for members."""

    def __init__(
        self,
        ctx: OperatorContext,
        where: Callable[[Params, int], str] = member_url,
        peer: Callable[[Params, int], str] = etcd.member_url,
    ) -> None:
        self._ctx = ctx
        self.on_change: Callable[[str], None] = lambda key: None
        self._where, self._peer = where, peer
        # From outside the management cluster there is no way to the pods, unless somebody gives one.
        self._reachable = ctx.inside or where is not member_url
        self._texts: dict[str, str] = {}
        self._wanted: dict[str, Wanted] = {}
        self.controller = Controller("etcd-members", self.reconcile, workers=4)

    def text(self, key: str) -> str:
        """What is going on, for the status; empty when nothing is."""
        return self._texts.get(key, "")

    def forget(self, key: str) -> None:
        """Nobody is asked any more, until the next pass hands over what it knows."""
        self._texts.pop(key, None)
        self._wanted.pop(key, None)

    def update(
        self,
        p: Params,
        cluster: dict[str, Any],
        client: dict[str, Any] | None,
        record: m.Record | None,
        live: Mapping[str, Any] | None,
    ) -> None:
        """Take over what a pass knows."""
        key = p.key
        if client is None or not busy(record, p.replicas, live):
            # A step under way may have been the last one: it sees that for itself.
            self.forget(key)
        elif self._reachable:
            data = secret_data(client)
            identity = Identity(data["ca.crt"], data["etcd-client.crt"], data["etcd-client.key"])
            self._wanted[key] = Wanted(p, identity, cluster)
            self.controller.enqueue(key)
        elif record is not None and record.replicas != p.replicas:
            self._texts[key] = "members are changed only by an operator that runs in the management cluster"

    async def reconcile(self, key: str) -> Result | None:
        """One step."""
        wanted = self._wanted.get(key)
        if wanted is None:
            return None
        ns = wanted.params.namespace
        informers = self._ctx.informers
        live = informers.get(STATEFULSETS, labels=names.LABEL_CONTROL_PLANE_NAMESPACE).get(etcd.COMPONENT, ns)
        found = informers.get(CONFIGMAPS, labels=names.LABEL_CONTROL_PLANE_NAMESPACE).get(etcd.MEMBERS_CONFIG, ns)
        record = etcd_members.read(found)
        if record is None or not busy(record, wanted.params.replicas, live):
            self._tell(key, "")
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._step(key, wanted, record)
        except (HcpError, TimeoutError) as exc:
            # Also what etcd refuses for now: a learner that is behind, a change while somebody is away.
            log.info("members of etcd stay for now", extra={"key": key, "error": str(exc) or "no answer in time"})
            return Result(SOON if not record.settled else LATER)

    async def _step(self, key: str, wanted: Wanted, record: m.Record) -> Result:
        p = wanted.params
        found = await self._ctx.client.list(PODS, p.namespace, labels=f"app={etcd.COMPONENT}")
        pods = {i: pod for pod in found if (i := etcd_members.index_of(pod)) is not None}
        empty = [i for i, pod in pods.items() if _stays(pod) and etcd_members.empty(pod)]
        if record.settled and record.replicas == p.replicas and not empty:
            self._tell(key, "")  # away, not lost
            return Result(LATER)
        said = m.told(record, p.replicas, empty)
        answers = await self._ask(wanted, range(m.MOST) if record.target is None else range(record.replicas))
        steady = [one for index, one in answers.items() if index not in empty and not one.learner]
        asked = next((one for one in steady if one.leader), None)
        if asked is None:
            hopeless = empty and len(steady) <= record.replicas // 2
            self._tell(key, NO_MAJORITY.format(f"{m.named(empty)} came back") if hopeless else said)
            return Result(LATER)
        async with Etcd(asked.url, wanted.identity) as leader:
            seen = m.Seen(
                record,
                p.replicas,
                [self._peer(p, index) for index in range(m.MOST)],
                await leader.members(),
                answering=frozenset(answers),
                leader=next((index for index, one in answers.items() if one.leader), None),
                pods=frozenset(pods),
                empty=frozenset(empty),
                claims=await self._claims(p, record),
            )
            step = m.plan(seen)
            log.info("members of etcd", extra={"key": key, "step": repr(step)})
            why = step.why if isinstance(step, m.Wait) else ""
            self._tell(key, f"{said}: {why}" if said and why else said or why)
            await self._do(wanted, seen, step, leader, pods)
        if isinstance(step, m.Done):
            return Result(LATER)
        return Result(SOON if isinstance(step, m.Wait | m.Restart | m.Drop) else NEXT)

    async def _do(
        self, wanted: Wanted, seen: m.Seen, step: m.Step, leader: Etcd, pods: Mapping[int, dict[str, Any]]
    ) -> None:
        p, client = wanted.params, self._ctx.client
        match step:
            case m.Write(record):
                await self._write(p, record, seen.urls)
            case m.Add(index):
                await leader.add_learner(seen.urls[index])
            case m.Promote(index, peer):
                await leader.promote(peer.id)
                self._event(wanted, "Normal", "EtcdMemberJoined", f"{m.named([index])} has all data and votes")
            case m.Remove(index, peer, lost):
                await leader.remove(peer.id)
                name = m.named([index])
                if lost:
                    self._event(wanted, "Warning", "EtcdMemberLost", f"{name} lost its data and is replaced")
                else:
                    self._event(wanted, "Normal", "EtcdMemberRemoved", f"{name} is no member any more")
            case m.HandOver(peer):
                await leader.hand_over(peer.id)
            case m.Restart(index):
                meta = pods[index]["metadata"]
                await client.delete(PODS, meta["name"], p.namespace, uid=meta["uid"], missing_ok=True)
            case m.Drop(index):
                await client.delete(PVCS, etcd_members.claim(index), p.namespace, missing_ok=True)

    async def _write(self, p: Params, record: m.Record, urls: Any) -> None:
        joiner = urls[record.joining] if record.joining is not None else ""
        informer = self._ctx.informers.get(CONFIGMAPS, labels=names.LABEL_CONTROL_PLANE_NAMESPACE)
        await apply_if_changed(self._ctx.client, informer, etcd_members.manifest(p, record, joiner))

    async def _ask(self, wanted: Wanted, indexes: range) -> dict[int, Member]:
        """Those that answer."""

        async def one(index: int) -> Member | None:
            try:
                async with (
                    asyncio.timeout(_ANSWER),
                    Etcd(self._where(wanted.params, index), wanted.identity) as etcd_member,
                ):
                    return await etcd_member.status()
            except (HcpError, TimeoutError):
                return None

        answers = await asyncio.gather(*(one(index) for index in indexes))
        return {index: found for index, found in zip(indexes, answers, strict=True) if found is not None}

    async def _claims(self, p: Params, record: m.Record) -> frozenset[int]:
        """Of volumes beyond those of the members; asked for only where one may be in the way."""
        if record.target is None and (record.joining is not None or record.replicas >= p.replicas):
            return frozenset()
        beyond = range(record.replicas if record.target is None else record.target, m.MOST)
        found = [await self._ctx.client.get_or_none(PVCS, etcd_members.claim(i), p.namespace) for i in beyond]
        return frozenset(index for index, live in zip(beyond, found, strict=True) if live is not None)

    def _tell(self, key: str, text: str) -> None:
        if self._texts.get(key, "") != text:
            self._texts[key] = text
            self.on_change(key)

    def _event(self, wanted: Wanted, kind: str, reason: str, message: str) -> None:
        self._ctx.events.event(wanted.cluster, kind, reason, message)


def _stays(pod: Mapping[str, Any]) -> bool:
    return not pod["metadata"].get("deletionTimestamp")
