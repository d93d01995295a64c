"""What NodePools bring to the shape of a reconcile (`runtime/reconcile.py`)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.api.pause import Pause
from hcp.errors import sentence
from hcp.kube.errors import NotFound
from hcp.kube.resources import NODEPOOLS
from hcp.nodepool import status
from hcp.nodepool.deletion import delete_pool
from hcp.nodepool.observed import Observed
from hcp.nodepool.phases import PHASES, UNMANAGED
from hcp.nodepool.scope import Learned, Object, Scope, Tools
from hcp.runtime import hibernation
from hcp.runtime.conditions import is_true
from hcp.runtime.controller import Result
from hcp.runtime.informer import Informer
from hcp.runtime.phases import Phases, Report
from hcp.runtime.reconcile import Kind


class NodePoolKind(Kind[Scope, Learned]):
    """Makes each NodePool true."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    @property
    def informer(self) -> Informer:
        return self._tools.watches.pools

    async def delete(self, obj: Object, now: dt.datetime) -> Result | None:
        return await delete_pool(self._tools, obj)

    async def adopt(self, obj: Object) -> Object | None:
        """The finalizer, and the hosted cluster as owner. A pool whose cluster goes is deleted by that."""
        cluster = self._cluster(obj)
        if cluster is None:
            return obj
        if cluster["metadata"].get("deletionTimestamp"):
            return None
        patch = _adoption(obj["metadata"], cluster["metadata"])
        if not patch:
            return obj
        patch["resourceVersion"] = obj["metadata"]["resourceVersion"]
        made = await self._patch(obj, {"metadata": patch})
        return {**obj, "metadata": made["metadata"]}

    async def scope(self, obj: Object, rest: Pause, now: dt.datetime) -> Scope:
        cluster = self._cluster(obj)
        return Scope(self._tools, obj, cluster, now, Observed(pause=rest, resting=hibernation.resting(cluster)))

    def phases(self, scope: Scope) -> Phases[Scope, Learned]:
        return UNMANAGED if scope.unmanaged else PHASES

    def compute(self, obj: Object, scope: Scope, report: Report, now: str) -> Object:
        errors = {name: sentence(exc) for name, exc in report.errors.items()}
        return status.compute(obj, replace(scope.seen, errors=errors), now)

    async def written(self, scope: Scope, before: Object, after: Object) -> None:
        """Annotations for the next passes, and the event people wait for."""
        known = annotations_of(scope.pool)
        changed = {key: value for key, value in scope.annotations.items() if known.get(key) != value}
        if changed:
            try:
                await self._patch(scope.pool, {"metadata": {"annotations": changed}})
            except NotFound:
                return
        kind = c.REACHED_IGNITION_ENDPOINT
        if is_true(after.get("conditions"), kind) and not is_true(before.get("conditions"), kind):
            self._tools.ctx.events.event(scope.pool, "Normal", "GetPayload", "A machine fetched its node document")

    def _cluster(self, pool: Object) -> Object | None:
        return self._tools.watches.clusters.get(at(pool, "spec.clusterName", ""), pool["metadata"]["namespace"])

    async def _patch(self, pool: Object, body: Object) -> Object:
        meta = pool["metadata"]
        made = await self._tools.ctx.client.patch(NODEPOOLS, meta["name"], meta["namespace"], body)
        self.informer.observe(made)
        return made


def _adoption(mine: Object, owner: Object) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    if names.FINALIZER not in (mine.get("finalizers") or []):
        patch["finalizers"] = [*(mine.get("finalizers") or []), names.FINALIZER]
    owners = mine.get("ownerReferences") or []
    if not any(entry.get("uid") == owner["uid"] for entry in owners):
        reference = {
            "apiVersion": names.API_VERSION,
            "kind": "HostedCluster",
            "name": owner["name"],
            "uid": owner["uid"],
        }
        patch["ownerReferences"] = [*(o for o in owners if o.get("kind") != "HostedCluster"), reference]
    return patch
