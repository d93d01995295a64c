"""What HostedClusters bring to the shape of a reconcile (`runtime/reconcile.py`)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import at
from hcp.api.pause import Pause
from hcp.api.spec import is_unmanaged
from hcp.controlplane import audit, etcd, etcd_members, tls_profiles, tuning
from hcp.controlplane.params import Params
from hcp.errors import sentence
from hcp.etcd.membership import Record
from hcp.guest.own_network import own_network
from hcp.hostedcluster import (
    defaults,
    deletion,
    etcd_maintenance,
    events,
    ignored_fields,
    inside,
    mirrored,
    status,
    translate,
    validation,
    wake_requests,
)
from hcp.hostedcluster.hibernation import Sleep
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.phases import PHASES, RESTING, SLEEPING, rotation
from hcp.hostedcluster.scope import Learned, Object, Scope, Tools
from hcp.kube.resources import CONFIGMAPS, DEPLOYMENTS, HOSTEDCLUSTERS, INGRESS_CONFIGS, ROUTES, STATEFULSETS
from hcp.kubevirt import owner_annotations
from hcp.kubevirt.infra import credentials
from hcp.kubevirt.networks import ManagementNetworks
from hcp.runtime import ownership
from hcp.runtime.conditions import is_true
from hcp.runtime.controller import Result
from hcp.runtime.hibernation import stage, wish
from hcp.runtime.informer import Informer
from hcp.runtime.phases import Phases, Report
from hcp.runtime.reconcile import Kind
from hcp.runtime.store import key_of


class HostedClusterKind(Kind[Scope, Learned]):
    """Holds what passes share."""

    # Nothing but time changes: certificates near their end are renewed in such a pass.
    steady = 3600.0

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._ctx = tools.ctx
        self._networks = ManagementNetworks(tools.ctx.informers)

    @property
    def informer(self) -> Informer:
        return self._tools.cache.informer(HOSTEDCLUSTERS)

    def gone(self, key: str) -> None:
        self._tools.forget(key)
        self._tools.start_queue.done(key)
        self._tools.foreign_namespaces.forget(key)

    async def delete(self, obj: Object, now: dt.datetime) -> Result | None:
        self.gone(key_of(obj))
        if names.FINALIZER not in (obj["metadata"].get("finalizers") or []):
            return None
        claim = await ownership.look(self._ctx.client, obj)

        def warn(reason: str, message: str) -> object:
            return self._ctx.events.event(obj, "Warning", reason, message)

        result = await deletion.delete(self._ctx.client, self._tools.cache, obj, claim, now, warn)
        if result is None:
            meta = obj["metadata"]
            hosted = names.control_plane_namespace(meta["namespace"], meta["name"])
            if not claim.foreign:
                self._ctx.guests.forget(hosted)
            events.TIME_TO_AVAILABLE.remove(namespace=meta["namespace"], name=meta["name"])
        return result

    async def adopt(self, obj: Object) -> Object:
        """Finalizer and defaults in one write, before anything is made; later, that a request wakes it, or did."""
        elsewhere = credentials(at(obj, "spec.platform") or {})
        domain = self._tools.infra_ingress.domain(key_of(obj)) if elsewhere else self._apps_domain()
        body = defaults.patch_for(obj, domain)
        body = body or wake_requests.patch_for(obj, self._api_route(obj), dt.datetime.now(dt.UTC))
        if body is None:
            return obj
        meta = obj["metadata"]
        made = await self._ctx.client.patch(HOSTEDCLUSTERS, meta["name"], meta["namespace"], body)
        self.informer.observe(made)
        return made

    def _api_route(self, obj: Object) -> Object | None:
        meta = obj["metadata"]
        hosted = names.control_plane_namespace(meta["namespace"], meta["name"])
        return self._tools.cache.get(ROUTES, names.API_SERVICE, hosted)

    async def scope(self, obj: Object, rest: Pause, now: dt.datetime) -> Scope:
        params, unreadable = self._params(obj)
        spec = obj["spec"]
        asked = params.annotations
        wrong = [
            etcd_maintenance.plan_of(params)[1],
            *rotation.problems(asked),
            audit.problem(asked),
            *tuning.problems(asked),
            wish(asked, now).problem,
            wake_requests.problem(asked, params.published("APIServer").type),
            owner_annotations.problem(asked, unmanaged=is_unmanaged(obj)),
        ]
        seen = Observed(
            pause=rest,
            config_problems=unreadable,
            unsupported=validation.unsupported(spec),
            unacted=[
                *ignored_fields.not_acted_on(spec),
                *ignored_fields.ignored_annotations(asked),
                *(text for text in wrong if text),
            ],
            partly_acted=[*ignored_fields.acted_on_in_part(spec), *tls_profiles.left_out(spec)],
            proxy=tuple(validation.proxy_problems(spec)) if at(spec, "configuration.proxy") else None,
            own_network=own_network(spec),
            rewritten=self._tools.guests.state(params.key).rewritten,
            sleep=(sleep := self._sleep(obj, params, now)),
        )
        since = wake_requests.mark(obj, self._api_route(obj))
        params = replace(params, asleep=sleep.empty(self._workloads(params)), sleeps_since=since)
        if (record := self._members(params)) is not None:
            params = replace(params, etcd_members=record.replicas, etcd_partition=record.partition(params.replicas))
            seen = replace(seen, etcd_record=record)
        return Scope(self._tools, obj, params, now, seen, await ownership.look(self._ctx.client, obj))

    def _sleep(self, obj: Object, params: Params, now: dt.datetime) -> Sleep:
        meta, machines = obj["metadata"], self._tools.machines.state(params.key)
        command = f"hcp wake {meta['name']} -n {meta['namespace']}"
        asked = wish(params.annotations, now)
        on_request = wake_requests.possible(params.annotations, params.published("APIServer").type)
        return Sleep(asked, stage(obj), machines, command=command, on_request=on_request)

    def _members(self, params: Params) -> Record | None:
        """What is decided about the members of etcd; None for one that never had several."""
        if params.foreign_etcd:
            return None
        written = etcd_members.read(self._tools.cache.get(CONFIGMAPS, etcd.MEMBERS_CONFIG, params.namespace))
        if written is not None or not params.highly_available:
            return written
        return etcd_members.first(params, self._tools.cache.get(STATEFULSETS, etcd.COMPONENT, params.namespace))

    def _workloads(self, params: Params) -> list[Object]:
        found = (STATEFULSETS, "etcd"), (DEPLOYMENTS, "kube-apiserver")
        return [live for kind, name in found if (live := self._tools.cache.get(kind, name, params.namespace))]

    def phases(self, scope: Scope) -> Phases[Scope, Learned]:
        if scope.seen.pause.paused:
            self._tools.membership.forget(scope.params.key)
            return RESTING
        return SLEEPING if scope.seen.sleep.quiet else PHASES

    def again(self, scope: Scope) -> float | None:
        dates = (scope.seen.sleep.wish.seconds(scope.now), mirrored.next_component(scope))
        return min((seconds for seconds in dates if seconds is not None), default=None)

    def compute(self, obj: Object, scope: Scope, report: Report, now: str) -> Object:
        errors = {name: sentence(exc) for name, exc in report.errors.items()}
        return status.compute(obj, replace(scope.seen, errors=errors), now)

    async def written(self, scope: Scope, before: Object, after: Object) -> None:
        """Events, the projection's status, the components, and the line of those that want to start."""
        key = scope.params.key
        if scope.seen.cannot_start or scope.seen.sleep.quiet or is_true(after.get("conditions"), c.AVAILABLE):
            self._tools.start_queue.done(key)
        if before != after:
            events.tell(self._ctx.events, scope.cluster, before, after)
        if not scope.claim.foreign:
            await mirrored.tell_projection(scope, after)
            await mirrored.tell_components(scope)
            inside.tell(scope, after)

    def _params(self, obj: Object) -> tuple[Params, list[str]]:
        """What the builders work with, and why a part of the spec could not be read."""
        domain, networks = self._apps_domain(), self._networks.now()
        problems = []
        try:
            params = translate.params(obj, apps_domain=domain)
        except ValueError as exc:
            # A network that cannot be read: validation says which; the rest of the spec is still good for names.
            problems.append(str(exc))
            harmless = {**obj, "spec": {**obj["spec"], "networking": {}}}
            params = translate.params(harmless, apps_domain=domain)
        known = replace(
            params,
            operator_namespace=self._ctx.namespace,
            hidden_networks=tuple(networks.hidden),
            management_api=networks.api,
            management_networks=networks.inside,
            same_node_first=self._ctx.same_node_first,
        )
        return known, problems

    def _apps_domain(self) -> str:
        """Below which this management cluster publishes Routes."""
        ingress = self._tools.cache.get(INGRESS_CONFIGS, "cluster")
        return str(at(ingress, "spec.domain") or "")
