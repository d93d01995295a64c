"""Keeps version, parts and settings true inside guests, from the first node that is wanted on.

Definitions and objects of config.openshift.io cost an API server memory: a control plane without nodes has nobody to
read them and has none. Nothing is asked while nothing changes, except for a look at drift now and then; people cannot
cause any (policy.py). What is to be told comes from the pass over the HostedCluster, so both say the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api.paths import at, labels_of
from hcp.controlplane.meta import digest
from hcp.errors import HcpError
from hcp.guest.applying import apply_definitions
from hcp.guest.objects import LABELS, Manifest
from hcp.guest.platform import operators, policy, settings, version
from hcp.guest.platform.operators import Operator
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import CLUSTEROPERATORS, CLUSTERVERSIONS, NETWORK_CONFIGS
from hcp.release.reading import CONFIG_DEFINITIONS, definitions
from hcp.runtime.apply import apply_if_changed
from hcp.runtime.conditions import now
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Controller, Result, namespace_of

RESYNC = 300.0
TIMEOUT = 90.0


@dataclass(frozen=True)
class Wanted:
    """What the last pass over the HostedCluster knew."""

    hosted_ns: str
    kubeconfig: Mapping[str, Any]
    # Whether there are nodes, or some are asked for.
    nodes: bool
    # The status that was written, and the spec that it is about.
    cluster: Mapping[str, Any]
    told: Mapping[str, Any]
    operators: tuple[Operator, ...]
    # Of the release; the fingerprint stands for them in comparisons.
    definitions: bytes = field(compare=False, repr=False)
    fingerprint: str = ""


@dataclass
class State:
    # Through which client definitions were applied, and which.
    client: Client | None = None
    defined: str = ""


class Platform:
    """One key for each hosted cluster whose release can tell."""

    def __init__(self, ctx: OperatorContext) -> None:
        self._ctx = ctx
        self._wanted: dict[str, Wanted] = {}
        self._states: dict[str, State] = {}
        self.controller = Controller("cluster-version", self.reconcile, workers=16, group=namespace_of, per_group=4)

    def update(self, key: str, wanted: Wanted) -> None:
        """Take over what a pass knows; work starts when something else is to be told."""
        if self._wanted.get(key) != wanted:
            self._wanted[key] = wanted
            self.controller.enqueue(key)

    def forget(self, key: str) -> None:
        self._wanted.pop(key, None)
        self._states.pop(key, None)

    async def reconcile(self, key: str) -> Result | None:
        wanted = self._wanted.get(key)
        if wanted is None:
            return None
        client = await self._ctx.guests.get(wanted.hosted_ns, wanted.kubeconfig)
        if client is None:
            return None
        state = self._states.setdefault(key, State())
        try:
            async with asyncio.timeout(TIMEOUT):
                if not await self._due(client, wanted, state):
                    return None
                await _keep(client, wanted)
        except NotFound:
            state.defined = ""  # somebody took a definition away
            raise
        except TimeoutError as exc:
            raise HcpError(f"The hosted API did not take its version within {TIMEOUT:.0f} s") from exc
        return Result(RESYNC)

    async def _due(self, client: Client, wanted: Wanted, state: State) -> bool:
        """Whether anything is to be told; the kinds are served then."""
        if state.client is client and state.defined == wanted.fingerprint:
            return True
        if not wanted.nodes and not await client.has(CLUSTERVERSIONS):
            return False
        for one in policy.objects():
            await apply_if_changed(client, None, one)
        found = definitions(wanted.hosted_ns, CONFIG_DEFINITIONS, wanted.definitions)
        await apply_definitions(client, [_ours(one) for one in found])
        state.client, state.defined = client, wanted.fingerprint
        return True


def fingerprint(found: bytes) -> str:
    return digest(found.decode()) if found else ""


def _ours(definition: Manifest) -> Manifest:
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **LABELS}}}


async def _keep(client: Client, wanted: Wanted) -> None:
    stamp = now()
    for one in settings.manifests(wanted.cluster, wanted.told):
        await _setting(client, one)
    for operator in wanted.operators:
        live = await apply_if_changed(client, None, operators.manifest(operator.name))
        await apply_if_changed(client, None, operators.status(operator, live, stamp), subresource="status")
    there = {operator.name for operator in wanted.operators}
    for name in operators.OPTIONAL:
        if name not in there and labels_of(await client.get_or_none(CLUSTEROPERATORS, name)).items() >= LABELS.items():
            await client.delete(CLUSTEROPERATORS, name)
    live = await apply_if_changed(client, None, version.manifest(wanted.cluster))
    generation, since = int(live["metadata"]["generation"]), str(live["metadata"]["creationTimestamp"])
    if at(live, "spec.desiredUpdate") is not None:
        await client.patch(CLUSTERVERSIONS, version.NAME, None, {"spec": {"desiredUpdate": None}})
    await apply_if_changed(client, None, version.status(wanted.told, generation, since), subresource="status")


async def _setting(client: Client, wanted: Manifest) -> None:
    if wanted["kind"] == NETWORK_CONFIGS.kind or "status" not in wanted:
        await apply_if_changed(client, None, wanted)
        return
    await apply_if_changed(client, None, {key: value for key, value in wanted.items() if key != "status"})
    name = {"name": wanted["metadata"]["name"]}
    status = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": name, "status": wanted["status"]}
    await apply_if_changed(client, None, status, subresource="status")
