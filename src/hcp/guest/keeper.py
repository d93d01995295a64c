"""The inside of guests: whether the published address answers, and what is kept true behind it.

This runs beside the passes over HostedClusters, one key at a time: a guest that is slow or unreachable holds up
nobody, and what was found is handed to the next pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY, ROUTER_NAMESPACE
from hcp.api.paths import at
from hcp.controlplane.meta import digest
from hcp.errors import HcpError
from hcp.guest import (
    autoscaling,
    enforcement,
    ingress,
    login,
    look,
    manifests,
    migration,
    node_trust,
    old_classes,
    olm,
    olm_end,
    storage,
)
from hcp.guest.applying import AT_ONCE, apply_definitions
from hcp.guest.migration_record import Move
from hcp.guest.monitoring import end as monitoring_end
from hcp.guest.monitoring import serving
from hcp.guest.objects import SYSTEM, GuestParams, Manifest
from hcp.guest.rewrite import rewrite_encrypted
from hcp.guest.state import GuestState
from hcp.guest.view import GuestView
from hcp.guest.views import Views
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import (
    CATALOGSOURCES,
    CONFIGMAPS,
    CRDS,
    DAEMONSETS,
    DEPLOYMENTS,
    NAMESPACES,
    SERVICEACCOUNTS,
    SERVICES,
)
from hcp.runtime.apply import apply_if_changed
from hcp.runtime.context import PUBLISHED_KUBECONFIG, OperatorContext
from hcp.runtime.controller import Controller, Result, namespace_of

log = logging.getLogger(__name__)
# How often drift of what is not followed is looked for.
RESYNC = 300.0
# The published address and the tunnel are asked at this pace: no watch tells that they stopped answering.
ASK_STEADY, ASK_WAITING = 60.0, 10.0
PROBE_TIMEOUT = 5.0
PROBE_AGAIN_FIRST, PROBE_AGAIN_MAX = 0.1, 5.0
# A guest that answers its health check and nothing else is given up for this time.
KEEP_TIMEOUT = 90.0
# Written into every namespace of the guest by kube-controller-manager.
ROOT_CA = "kube-root-ca.crt"


@dataclass
class State:
    """What is known of one hosted API."""

    # None: not asked; "": answers; else why not.
    health: str | None = None
    guest: GuestState | None = None
    # What the watched view showed in the last pass.
    seen: look.Look | None = None
    probes_failed: int = 0
    applied: str = ""
    applied_at: float = 0.0
    # Fingerprint of the encryption key under which everything was written last.
    rewritten: str = ""
    # How storing everything anew for a new minor goes.
    migration: migration.State = field(default_factory=migration.State)
    # Whether there is any catalog of operators, or an operator out of one.
    catalogs: bool = False
    # What is left of those who read them when there is none; None: not known.
    olm: olm_end.Left | None = None
    # Whether the guest has the Secret of kubeadmin.
    kubeadmin: bool = False
    policies: enforcement.Policies = field(default_factory=enforcement.Policies)
    # Whether the API of metrics is announced; None: not known.
    announced: bool | None = None
    # Which halves of monitoring were wanted when the rest was taken away.
    tidied: tuple[bool, bool] | None = None
    # Whether an autoscaler may work there; None: nobody looked yet.
    autoscaling: bool | None = None


@dataclass(frozen=True)
class Wanted:
    """What the last pass over the HostedCluster knew."""

    hosted_ns: str
    guest: GuestParams | None
    kubeconfigs: dict[str, dict[str, Any]]
    serving: bool
    # Fingerprint of the encryption key under which everything has to be written once more.
    rewrite: str = ""
    # The Kubernetes minor as which everything has to be stored; None where there never was another.
    move: Move | None = None


class Keeper:
    """Keeps guests true and remembers what they look like."""

    def __init__(self, ctx: OperatorContext, views: Views) -> None:
        self._ctx = ctx
        self._views = views
        self._states: dict[str, State] = {}
        self._wanted: dict[str, Wanted] = {}
        # Hosted namespace → cluster.
        self._keys: dict[str, str] = {}
        # Told which HostedCluster to look at again, once somebody wants to know.
        self.on_change: Callable[[str], None] = lambda key: None
        # They mostly wait for guests; of a guest that hangs, nobody but its own namespace should notice anything.
        self.controller = Controller("guest", self.reconcile, workers=32, group=namespace_of, per_group=8)

    def wire(self) -> Controller:
        """Look again when the view of a guest shows something else."""
        self._views.on_new(self._follow)
        return self.controller

    def _follow(self, hosted: str, view: GuestView) -> None:
        view.on_change(lambda: self._shown(hosted, view))

    def _shown(self, hosted: str, view: GuestView) -> None:
        """Nodes report every few seconds; a pass follows only if what the status says can be another."""
        key = self._keys.get(hosted, "")
        wanted = self._wanted.get(key)
        if wanted is not None and wanted.guest is not None:
            seen = self.state(key).seen
            if seen is not None and look.look(view, _objects(wanted.guest, self.state(key))) != seen:
                self.controller.enqueue(key)

    def state(self, key: str) -> State:
        return self._states.setdefault(key, State())

    def forget(self, key: str) -> None:
        """A cluster that goes away needs nothing kept true."""
        self._states.pop(key, None)
        wanted = self._wanted.pop(key, None)
        if wanted is not None:
            if self._keys.get(wanted.hosted_ns) == key:
                del self._keys[wanted.hosted_ns]
            self._views.drop(wanted.hosted_ns)

    def update(self, key: str, wanted: Wanted) -> None:
        """Take over what a pass knows; work starts when that changed something for the guest."""
        if self._wanted.get(key) != wanted:
            self._wanted[key] = wanted
            self._keys[wanted.hosted_ns] = key
            if not wanted.serving:
                # Whatever was known is not true any more; this is known at once, without asking.
                state = self.state(key)
                state.health, state.guest, state.applied = None, None, ""
            self.controller.enqueue(key)

    def unsettled(self, key: str) -> list[str]:
        """What inside the guest is not yet as the last pass wants it; empty when all is."""
        wanted, state = self._wanted.get(key), self.state(key)
        if wanted is None or wanted.guest is None:
            return [] if wanted is not None else ["the hosted API"]
        if state.guest is None or not state.guest.reachable:
            return [(state.guest and state.guest.problem) or "the hosted API"]
        if state.applied != digest(_objects(wanted.guest, state)):
            return ["the parts inside the cluster"]
        return list(state.guest.waiting) if state.guest.nodes else []

    async def reconcile(self, key: str) -> Result | None:
        """Ask the published address, keep the guest true, look at it."""
        wanted = self._wanted.get(key)
        if wanted is None or not wanted.serving or PUBLISHED_KUBECONFIG not in wanted.kubeconfigs:
            return None
        state = self.state(key)
        health = await self._probe(wanted)
        if self._wanted.get(key) is None:
            return None
        if health != state.health:
            state.health = health
            self.on_change(key)
        if health:
            state.probes_failed += 1
            return Result(min(PROBE_AGAIN_FIRST * 2 ** min(state.probes_failed - 1, 16), PROBE_AGAIN_MAX))
        state.probes_failed = 0
        applied = state.applied
        guest = await self._keep(key, wanted, state)
        if self._wanted.get(key) is None:
            return None
        if guest != state.guest or applied != state.applied:
            state.guest = guest
            self.on_change(key)
        quiet = not guest.problem and guest.data_plane[0] != "False" and state.seen is not None
        steady = quiet and state.olm is not olm_end.Left.ENDING
        if state.migration.more:
            return Result(0.0)
        return Result(ASK_STEADY if steady else ASK_WAITING)

    async def _probe(self, wanted: Wanted) -> str:
        """The API as users reach it."""
        client = await self._ctx.guests.published(wanted.hosted_ns, wanted.kubeconfigs[PUBLISHED_KUBECONFIG])
        if client is None:
            return "The kubeconfig of the hosted cluster does not exist yet"
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await client.raw_text("GET", "/healthz")
        except TimeoutError:
            return f"The hosted API at {client.server} did not answer within {PROBE_TIMEOUT:.0f} s"
        except HcpError as exc:
            return f"The hosted API is not reachable at its published address: {exc}"
        return ""

    async def _keep(self, key: str, wanted: Wanted, state: State) -> GuestState:
        state.seen = None
        if wanted.guest is None:
            return GuestState()
        try:
            client = await self._ctx.guests.get(wanted.hosted_ns, wanted.kubeconfigs.get(self._ctx.guests.secret_name))
            if client is None:
                return GuestState()
            return await self._kept(key, wanted.guest, wanted, state, client)
        except TimeoutError:
            return GuestState(problem=f"The hosted API did not answer all requests within {KEEP_TIMEOUT:.0f} s")
        except HcpError as exc:
            log.info("guest cannot be kept", extra={"key": key, "error": str(exc)})
            return GuestState(problem=f"The inside of the hosted cluster cannot be reconciled: {exc}")

    async def _kept(self, key: str, params: GuestParams, wanted: Wanted, state: State, client: Client) -> GuestState:
        async with asyncio.timeout(KEEP_TIMEOUT):
            await client.raw_text("GET", "/livez")
            if late := await _unpublished(client, params):
                return GuestState(reachable=True, waiting=late)
            view = await self._views.get(wanted.hosted_ns, client)
            await view.nodes.wait_synced()
            if view.nodes.list():
                await view.follow_parts()
                if params.ingress is not None:
                    await view.follow_routers()
            await enforcement.follow(client, view, params, state.policies)
            await _measured(client, view, params, state)
            if params.login is not None:
                await view.follow_login()
                state.kubeadmin = login.has_secret(view)
                await login.remove_unwanted(client, view, params.login)
            if not params.autoscaling and state.autoscaling is not False:
                await autoscaling.remove(client)
            state.autoscaling = params.autoscaling
            objects = await _made_true(client, view, params, state)
            if params.catalogs is not None:
                await view.follow_catalogs()
                if state.catalogs != await _reads_catalogs(client, view, params, state):
                    state.catalogs = not state.catalogs
                    objects = await _made_true(client, view, params, state)
                await _remove_catalogs(client, view, params)
                if state.catalogs or params.catalogs.running:
                    await view.follow_readers()
        if wanted.rewrite and state.rewritten != wanted.rewrite:
            # Takes as long as there are objects; each request has its own end.
            count = await rewrite_encrypted(client)
            log.info("stored again under a new encryption key", extra={"key": key, "objects": count})
            state.rewritten = wanted.rewrite
            self.on_change(key)
        if wanted.move is not None and await migration.step(
            self._ctx.client, client, wanted.hosted_ns, wanted.move, state.migration
        ):
            self.on_change(key)
        async with asyncio.timeout(KEEP_TIMEOUT):
            seen = state.seen = look.look(view, objects)
            if seen.has("DaemonSet", node_trust.NAME) and not params.node_trust:
                await _remove_node_trust(client)
            tunnel = await look.data_plane(view, seen)
            port = await _ingress_port(client) if params.ingress else 0
        return GuestState(
            reachable=True,
            nodes=seen.nodes,
            ready_nodes=seen.ready_nodes,
            waiting=seen.waiting,
            parts=seen.workloads,
            version=params.control_plane.version,
            ingress_port=port,
            kubeadmin=state.kubeadmin if params.login else None,
            kubelet=seen.kubelet,
            metrics_api=seen.metrics_api if params.monitoring else "",
            olm=seen.olm,
            data_plane=tunnel,
            control_plane=look.control_plane(seen),
        )


def _objects(params: GuestParams, state: State) -> list[Manifest]:
    if params.catalogs is not None and state.catalogs:
        params = replace(params, catalogs=replace(params.catalogs, used=True))
    params = replace(params, policies=state.policies.stage)
    if params.monitoring is not None and state.announced:
        params = replace(params, monitoring=replace(params.monitoring, announced=True))
    return [*manifests.objects(params), *login.objects(params, there=state.kubeadmin)]


async def _made_true(client: Client, view: GuestView, params: GuestParams, state: State) -> list[Manifest]:
    """All of it when it changed or nobody looked for long, otherwise what is followed."""
    objects = _objects(params, state)
    version = digest(objects)
    if state.applied != version or time.monotonic() - state.applied_at > RESYNC:
        if params.storage is not None:
            await old_classes.remove(client, objects)
        await _apply_all(client, view, objects)
        state.applied, state.applied_at = version, time.monotonic()
    else:
        await _apply_all(client, view, [o for o in objects if _followed(view, o)])
    return objects


async def _measured(client: Client, view: GuestView, params: GuestParams, state: State) -> None:
    """Follow what measures; take away what is not wanted, and an API that nobody can serve."""
    given, nodes = params.monitoring, len(view.nodes.list())
    wanted = (bool(given and given.metrics_server), bool(given and given.prometheus))
    if state.tidied != wanted:
        await monitoring_end.tidy(client, metrics=wanted[0], history=wanted[1])
        state.tidied = wanted
    if not wanted[0]:
        state.announced = False
        return
    if nodes:
        await view.follow_monitoring()
        deployments, apis = view.monitors[DEPLOYMENTS.kind].list(), view.metrics_api.list()
        if state.announced and not apis:
            state.applied = ""  # somebody took it away
        state.announced = serving.announce(deployments, apis, nodes, before=bool(state.announced))
    elif state.announced is not False:
        await monitoring_end.withdraw(client)
        state.announced = False


async def _reads_catalogs(client: Client, view: GuestView, params: GuestParams, state: State) -> bool:
    """Whether somebody has to. When nobody has, they end, once; nothing is asked of a guest that has none."""
    if view.catalogs.list() or (params.catalogs and params.catalogs.catalogs):
        state.olm = None
        return bool(view.catalogs.list())
    if state.olm is not olm_end.Left.NOTHING:
        state.olm = await olm_end.end(client)
    return state.olm is olm_end.Left.NEEDED


async def _remove_catalogs(client: Client, view: GuestView, params: GuestParams) -> None:
    """Default sources that were turned off."""
    wanted = {one.default.name for one in params.catalogs.catalogs} if params.catalogs else set()
    for live in view.catalogs.list():
        name, namespace = live["metadata"]["name"], live["metadata"].get("namespace")
        ours = (live["metadata"].get("labels") or {}).get(LABEL_MANAGED_BY) == MANAGED_BY
        if ours and namespace == olm.MARKETPLACE and name not in wanted:
            with contextlib.suppress(NotFound):
                await client.delete(CATALOGSOURCES, name, namespace)


async def _remove_node_trust(client: Client) -> None:
    """Nobody changes bundles any more. The DaemonSet goes last: it is what makes us come here again."""
    for resource in (SERVICEACCOUNTS, CONFIGMAPS, DAEMONSETS):
        with contextlib.suppress(NotFound):
            await client.delete(resource, node_trust.NAME, SYSTEM)


async def _ingress_port(client: Client) -> int:
    """Given by the guest's API server when the Service is made; it stays."""
    live = await client.get_or_none(SERVICES, ingress.SERVICE, ROUTER_NAMESPACE)
    return next((int(one.get("nodePort") or 0) for one in at(live, "spec.ports") or () if one["name"] == "https"), 0)


async def _unpublished(client: Client, guest: GuestParams) -> tuple[str, ...]:
    """Pods learn of another API authority from this ConfigMap: it has to be there before they are started anew."""
    if not guest.root_changed:
        return ()
    live = await client.get_or_none(CONFIGMAPS, ROOT_CA, SYSTEM)
    known = ((live or {}).get("data") or {}).get("ca.crt", "")
    return () if known.strip() == guest.root_bundle.decode().strip() else (f"ConfigMap {ROOT_CA}",)


def _followed(view: GuestView, obj: Manifest) -> bool:
    """Whether the view has this object's kind: then comparing costs no request, and drift is seen at once.

    Of catalogs it knows only that they are there.
    """
    if obj["kind"] == CATALOGSOURCES.kind:
        return view.catalogs.synced and view.catalogs.get(obj["metadata"]["name"], obj["metadata"]["namespace"]) is None
    informer = view.of(obj)
    return informer is not None and informer.synced and informer.covers(obj)


async def _apply_all(client: Client, view: GuestView, objects: list[Manifest]) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(obj: Manifest) -> None:
        async with limit:
            if storage.chosen_by_tenants(obj):
                obj = storage.as_chosen(obj, await _live(client, obj))
            await apply_if_changed(client, view.of(obj), obj)

    # Objects of a kind can only be made once there is the kind, and in a namespace once there is that.
    await apply_definitions(client, [o for o in objects if o["kind"] == CRDS.kind])
    await asyncio.gather(*(one(o) for o in objects if o["kind"] == NAMESPACES.kind))
    await asyncio.gather(*(one(o) for o in objects if o["kind"] not in (CRDS.kind, NAMESPACES.kind)))


async def _live(client: Client, obj: Manifest) -> Manifest | None:
    return await client.get_or_none(await client.resource_for(obj), obj["metadata"]["name"])
