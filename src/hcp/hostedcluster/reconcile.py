"""One pass over one HostedCluster, from spec to status."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import replace
from typing import Any

from hcp.api import conditions as c
from hcp.api import names, pause
from hcp.controlplane import audit
from hcp.errors import HcpError
from hcp.guest.own_network import own_network
from hcp.hostedcluster import (
    components,
    defaults,
    deletion,
    etcd_care,
    phase_base,
    phase_encryption,
    phase_observe,
    phase_pki,
    phase_rotation,
    phase_workloads,
    projected_status,
    status,
    translate,
    turns,
    validation,
)
from hcp.hostedcluster.cache import Cache
from hcp.hostedcluster.etcd_care import EtcdCare
from hcp.hostedcluster.hosted_api import HostedApi
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.releases import Releases, sentence
from hcp.hostedcluster.scope import Scope
from hcp.hostedcluster.strangers import Strangers
from hcp.kube.resources import (
    CONTROLPLANECOMPONENTS,
    HOSTEDCLUSTERS,
    HOSTEDCONTROLPLANES,
    INGRESS_CONFIGS,
    NODES,
    ROUTES,
    STATEFULSETS,
)
from hcp.kubevirt.networks import ManagementNetworks
from hcp.runtime import metrics, ownership
from hcp.runtime.conditions import get_condition, is_true
from hcp.runtime.context import OperatorContext
from hcp.runtime.controller import Result
from hcp.runtime.phases import Phase, Phases, Report

log = logging.getLogger(__name__)
Object = dict[str, Any]
TIME_TO_AVAILABLE = metrics.Gauge(
    "hcp_time_to_available_seconds", "From creation to the first time Available, by cluster.", ["namespace", "name"]
)
# A cause outside our watches (a registry, a neighbour with the same infraID, a kind not served yet) is looked at again
# at this pace.
LOOK_AGAIN = 10.0
# The reason in the conditions of a cluster whose namespace is somebody else's.
FOREIGN_NAMESPACE = "ForeignNamespace"
# Nothing but time changes: certificates near their end are renewed in such a pass.
STEADY = 3600.0


async def _release(scope: Scope) -> None:
    release, scope.seen.release = await scope.releases.read(scope.cluster)
    if release is not None:
        scope.release = release


async def _take_release(scope: Scope) -> None:
    """The images become known to the builders only after all that ran beside the reading is done."""
    if scope.release is not None:
        scope.change(images=dict(scope.release.components), version=scope.release.version)


PHASES: Phases[Scope] = Phases(
    "hostedcluster",
    [
        (Phase("namespace", phase_base.hosted_namespace), Phase("release", _release, critical=False)),
        (Phase("projection", phase_base.projection), Phase("images", _take_release)),
        (
            Phase("authorities", phase_pki.authorities),
            Phase("publishing", phase_workloads.publish),
            Phase("rules", phase_workloads.rules),
            Phase("audit-webhook", phase_base.audit_webhook),
            Phase("signing-key", phase_base.signing_key),
            Phase("encryption-key", phase_encryption.encryption_key),
            Phase("copies", phase_base.user_copies, critical=False),
        ),
        Phase("certificates", phase_pki.early_leaves),
        (
            Phase("etcd", phase_workloads.etcd_workload),
            Phase("controllers", phase_workloads.controllers),
            Phase("cluster-api", phase_workloads.cluster_api, critical=False),
            Phase("addresses", phase_workloads.addresses),
        ),
        Phase("published-certificates", phase_pki.published_leaves),
        Phase("kube-apiserver", phase_workloads.api_server),
        Phase("limits", phase_workloads.limits, critical=False),
    ],
)


class Reconciler:
    """Holds what passes share."""

    def __init__(
        self,
        ctx: OperatorContext,
        cache: Cache,
        releases: Releases,
        api: HostedApi,
        care: EtcdCare,
        line: turns.Turns,
        strangers: Strangers,
    ) -> None:
        self._strangers = strangers
        self._ctx = ctx
        self._line = line
        self._cache = cache
        self._releases = releases
        self._api = api
        self._care = care
        self._networks = ManagementNetworks(ctx.informers)

    async def __call__(self, key: str) -> Result | None:
        cluster = self._cache.informer(HOSTEDCLUSTERS).get_key(key)
        if cluster is None:
            self._forget(key)
            self._line.done(key)
            self._strangers.forget(key)
            return None
        now = dt.datetime.now(dt.UTC)
        if cluster["metadata"].get("deletionTimestamp"):
            self._line.done(key)
            return await self._delete(key, cluster, now)
        rest = pause.parse(cluster["spec"].get("pausedUntil"), now)
        if rest.paused:
            scope = self._scope(cluster, now)
            scope.seen.pause = rest
            scope.claim = await ownership.look(self._ctx.client, cluster)
            if scope.claim.ours:
                await phase_workloads.set_paused(scope, True)
            await self._finish(scope, Report())
            seconds = rest.seconds(now)
            return Result(seconds) if seconds is not None else None
        cluster = await self._complete(cluster)
        scope = self._scope(cluster, now)
        scope.seen.pause = rest
        scope.claim = await ownership.look(self._ctx.client, cluster)
        report = await self._make(scope)
        await self._finish(scope, report)
        return self._next(scope, report)

    def _scope(self, cluster: Object, now: dt.datetime) -> Scope:
        domain = self._apps_domain()
        spec = cluster["spec"]
        seen = Observed(
            unsupported=validation.unsupported(spec),
            unacted=validation.not_acted_on(spec),
            partly_acted=validation.acted_on_in_part(spec),
            own_network=own_network(spec),
        )
        try:
            params = translate.params(cluster, apps_domain=domain)
        except ValueError as exc:
            # A network that cannot be read: validation says which; the rest of the spec is still good for names.
            seen.config_problems.append(str(exc))
            harmless = {**cluster, "spec": {**spec, "networking": {}}}
            params = translate.params(harmless, apps_domain=domain)
        params = replace(params, operator_namespace=self._ctx.namespace)
        if wrong := etcd_care.plan_of(params)[1]:
            seen.unacted.append(wrong)
        networks = self._networks.now()
        params = replace(params, hidden_networks=tuple(networks.hidden), management_api=networks.api)
        seen.unacted += phase_rotation.problems(params.annotations)
        if wrong := audit.problem(params.annotations):
            seen.unacted.append(wrong)
        return Scope(self._ctx, self._cache, self._releases, cluster, params, now, seen)

    def _apps_domain(self) -> str:
        """Below which this management cluster publishes Routes."""
        ingress = self._cache.get(INGRESS_CONFIGS, "cluster")
        return str(((ingress or {}).get("spec") or {}).get("domain") or "")

    async def _complete(self, cluster: Object) -> Object:
        """Finalizer and defaults in one write, before anything is made."""
        body = defaults.patch_for(cluster, self._apps_domain())
        if body is None:
            return cluster
        meta = cluster["metadata"]
        made = await self._ctx.client.patch(HOSTEDCLUSTERS, meta["name"], meta["namespace"], body)
        self._cache.informer(HOSTEDCLUSTERS).observe(made)
        return made

    async def _make(self, scope: Scope) -> Report:
        others = self._cache.list(HOSTEDCLUSTERS)
        has_routes = await self._ctx.client.has(ROUTES)
        found = validation.problems(scope.cluster, others, has_routes=has_routes)
        scope.seen.config_problems = found or scope.seen.config_problems
        scope.seen.rewritten = self._api.state(scope.params.key).rewritten
        report = Report()
        if scope.claim.foreign:
            return self._held_up(scope)
        self._strangers.forget(scope.params.key)
        if not scope.seen.config_problems and not scope.seen.unsupported:
            scope.seen.ahead = self._ahead(scope)
            if not scope.seen.ahead:
                report = await PHASES.run(scope, key=scope.params.key)
        await phase_observe.observe(scope)
        self._care.update(scope)
        scope.seen.etcd_full = self._care.state(scope.params.key).full
        self._api.update(scope)
        known = self._api.state(scope.params.key)
        scope.seen.api_health, scope.seen.guest = known.health, known.guest
        if "kube-apiserver" in report.done:
            await self._rotate(scope, report)
        return report

    async def _rotate(self, scope: Scope, report: Report) -> None:
        try:
            await phase_rotation.rotate(scope, self._api)
        except HcpError as exc:
            report.errors["rotation"] = exc

    def _held_up(self, scope: Scope) -> Report:
        """A namespace of somebody else: nothing in it is read, written or told about, until it is gone."""
        scope.seen.config_problems = [scope.claim.problem, *scope.seen.config_problems]
        scope.seen.config_reason = FOREIGN_NAMESPACE
        self._forget(scope.params.key)
        self._strangers.follow(scope.params.key, scope.claim.namespace or {})
        return Report()

    def _ahead(self, scope: Scope) -> int:
        """How many other clusters start before this one may. What has begun once never waits again."""
        begun = self._cache.get(STATEFULSETS, "etcd", scope.namespace) is not None
        if begun or is_true((scope.cluster.get("status") or {}).get("conditions"), c.AVAILABLE):
            return 0
        return self._line.ahead(scope.params.key, turns.limit(self._cache.list(NODES)))

    async def _finish(self, scope: Scope, report: Report) -> None:
        """The one status patch of the pass, the projection's status, and the events that follow from the change."""
        scope.seen.errors = {name: sentence(exc) for name, exc in report.errors.items()}
        before = scope.cluster.get("status") or {}
        stamp = scope.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        after = status.compute(scope.cluster, scope.seen, stamp)
        if scope.seen.cannot_start or is_true(after.get("conditions"), c.AVAILABLE):
            self._line.done(scope.params.key)
        body = status.patch(before, after)
        meta = scope.cluster["metadata"]
        if body is not None:
            made = await self._ctx.client.patch(
                HOSTEDCLUSTERS, meta["name"], meta["namespace"], body, subresource="status"
            )
            self._cache.informer(HOSTEDCLUSTERS).observe(made)
            self._tell(scope, before, after)
        await self._project(scope, after)
        await self._tell_components(scope, stamp)

    async def _project(self, scope: Scope, after: Object) -> None:
        live = self._cache.get(HOSTEDCONTROLPLANES, scope.params.name, scope.namespace)
        if live is None or scope.seen.pause.paused or scope.claim.foreign:
            return
        before = live.get("status") or {}
        nodes = scope.seen.guest.nodes if scope.seen.guest else int(before.get("nodeCount") or 0)
        body = status.patch(before, {**before, **projected_status.projected(before, after, nodes)})
        if body is not None:
            made = await self._ctx.client.patch(
                HOSTEDCONTROLPLANES, scope.params.name, scope.namespace, body, subresource="status"
            )
            self._cache.informer(HOSTEDCONTROLPLANES).observe(made)

    async def _tell_components(self, scope: Scope, stamp: str) -> None:
        """One object for each part; a cluster installed by an older hcp may lack the kind."""
        found = components.workloads_of(scope.seen)
        if not found or scope.params.owner is None or not await self._ctx.client.has(CONTROLPLANECOMPONENTS):
            return
        for name, workload in sorted(found.items()):
            before = self._cache.get(CONTROLPLANECOMPONENTS, name, scope.namespace)
            wanted = components.component(scope.params, name, workload, before, stamp)
            if before is None or before.get("status") != wanted["status"]:
                self._cache.informer(CONTROLPLANECOMPONENTS).observe(await self._ctx.client.apply(wanted))

    def _tell(self, scope: Scope, before: Object, after: Object) -> None:
        """Events for what a person should know: turns of the conditions people look at."""
        old, new = before.get("conditions"), after.get("conditions")
        if is_true(new, c.AVAILABLE) and not is_true(old, c.AVAILABLE):
            created = dt.datetime.fromisoformat(str(scope.cluster["metadata"]["creationTimestamp"]))
            if get_condition(old, c.AVAILABLE) is None or not (before.get("controlPlaneVersion") or {}).get(
                "history", [{}]
            )[0].get("completionTime"):
                seconds = (dt.datetime.now(dt.UTC) - created).total_seconds()
                meta = scope.cluster["metadata"]
                TIME_TO_AVAILABLE.set(round(seconds, 3), namespace=meta["namespace"], name=meta["name"])
            self._ctx.events.event(scope.cluster, "Normal", "Available", "The hosted control plane is available")
        for kind in (
            c.VALID_CONFIGURATION,
            c.SUPPORTED_HOSTED_CLUSTER,
            c.VALID_RELEASE_IMAGE,
            c.VALID_RELEASE_INFO,
            c.RECONCILIATION_SUCCEEDED,
        ):
            have, had = get_condition(new, kind) or {}, get_condition(old, kind) or {}
            if have.get("status") == "False" and (had.get("status"), had.get("message")) != (
                "False",
                have.get("message"),
            ):
                self._ctx.events.event(scope.cluster, "Warning", str(have["reason"]), str(have.get("message")))
        if is_true(old, c.AVAILABLE) and not is_true(new, c.AVAILABLE):
            lost = get_condition(new, c.AVAILABLE) or {}
            self._ctx.events.event(scope.cluster, "Warning", "Unavailable", str(lost.get("message")))

    def _next(self, scope: Scope, report: Report) -> Result | None:
        """Errors come back with backoff; what no watch tells is looked at again."""
        report.raise_if_failed()
        if scope.claim.foreign:
            return Result(STEADY)
        if scope.seen.release.problem or scope.seen.config_problems or scope.seen.ahead:
            return Result(LOOK_AGAIN)
        soonest = [s for s in (report.requeue_after, scope.again, STEADY) if s is not None]
        return Result(min(soonest))

    def _forget(self, key: str) -> None:
        self._api.forget(key)
        self._care.forget(key)
        self._releases.forget(key)

    async def _delete(self, key: str, cluster: Object, now: dt.datetime) -> Result | None:
        if names.FINALIZER not in (cluster["metadata"].get("finalizers") or []):
            self._forget(key)
            return None
        meta = cluster["metadata"]
        hosted = names.control_plane_namespace(meta["namespace"], meta["name"])
        self._forget(key)
        self._strangers.forget(key)
        claim = await ownership.look(self._ctx.client, cluster)

        def warn(reason: str, message: str) -> object:
            return self._ctx.events.event(cluster, "Warning", reason, message)

        result = await deletion.delete(self._ctx.client, self._cache, cluster, claim, now, warn)
        if result is None:
            if not claim.foreign:
                await self._ctx.guests.forget(hosted)
                await self._api.close_client(hosted)
            TIME_TO_AVAILABLE.remove(namespace=meta["namespace"], name=meta["name"])
        return result
