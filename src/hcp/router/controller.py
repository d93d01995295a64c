"""Follows Routes, Services and EndpointSlices, and makes HAProxy and the Routes' status agree with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import NotFound
from hcp.router import admission, backends, maps
from hcp.router.haproxy import HAProxy
from hcp.runtime import Informer, metrics
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MANAGER = "hcp-router"
SERVICE_LABEL = "kubernetes.io/service-name"
GENERATED = "openshift.io/host.generated"
# Changes come in bursts (a Deployment's pods): wait this long for the rest of one.
SETTLE = 0.02
RETRY = 1.0
PARALLEL_WRITES = 8

ROUTES = metrics.Gauge("hcp_router_routes", "Routes, by whether they are served.", ["admitted"])
PUSHES = metrics.Counter("hcp_router_table_changes_total", "Tables handed to HAProxy, by table.", ["table"])
STARTS = metrics.Gauge("hcp_router_haproxy_starts", "How often HAProxy was started.")

Object = dict[str, Any]


def _by_service(one: Object) -> Iterable[str]:
    name = (one["metadata"].get("labels") or {}).get(SERVICE_LABEL)
    return (f"{one['metadata'].get('namespace', '')}/{name}",) if name else ()


class Router:
    """The router of one cluster."""

    def __init__(self, client: Client, haproxy: HAProxy, domain: str = "") -> None:
        self._client = client
        self._haproxy = haproxy
        self._domain = domain
        self._dirty = asyncio.Event()
        self._routes = Informer(client, r.ROUTES)
        self._services = Informer(client, r.SERVICES)
        self._slices = Informer(client, r.ENDPOINTSLICES)
        self._ingress = Informer(client, r.INGRESS_CONFIGS)
        self._slices.add_index("service", _by_service)
        for informer in (self._routes, self._services, self._slices, self._ingress):
            informer.add_listener(self._changed)
        self.ready = False

    @property
    def domain(self) -> str:
        """The apps domain: the one given, else what the cluster's ingress configuration says."""
        if self._domain:
            return self._domain
        config = self._ingress.get("cluster") or {}
        return str((config.get("spec") or {}).get("domain") or "")

    async def run(self) -> None:
        """Work until cancelled."""
        followed = [self._routes, self._services, self._slices]
        if not self._domain and await self._client.has(r.INGRESS_CONFIGS):
            followed.append(self._ingress)
        try:
            for informer in (self._routes, self._services, self._slices, self._ingress):
                await informer.start()
            for informer in followed:
                await informer.wait_synced()
            decisions, tables = self._compute()
            await self._haproxy.start(tables)
            self.ready = True
            await self._report(decisions)
            while True:
                await self._dirty.wait()
                await asyncio.sleep(SETTLE)
                self._dirty.clear()
                await self._pass()
        finally:
            self.ready = False
            for informer in (self._routes, self._services, self._slices, self._ingress):
                await informer.stop()
            await self._haproxy.close()

    def _changed(self, _old: Object | None, _new: Object | None) -> None:
        self._dirty.set()

    async def _pass(self) -> None:
        try:
            decisions, tables = self._compute()
            for name in await self._haproxy.push(tables):
                PUSHES.inc(table=name)
            await self._report(decisions)
        except (HcpError, OSError, TimeoutError) as error:
            log.error("a pass failed, trying again", extra={"error": str(error)})
            asyncio.get_running_loop().call_later(RETRY, self._dirty.set)
        STARTS.set(self._haproxy.starts)

    def _compute(self) -> tuple[list[admission.Decision], maps.Maps]:
        routes = {admission.key_of(route): route for route in self._routes.list()}
        decisions = admission.decide(routes.values(), self.domain)
        addresses = {
            decision.key: backends.of_route(routes[decision.key], self._service, self._endpoint_slices)
            for decision in decisions
            if decision.admitted
        }
        good = sum(decision.admitted for decision in decisions)
        ROUTES.set(good, admitted="true")
        ROUTES.set(len(decisions) - good, admitted="false")
        return decisions, maps.build(decisions, routes, addresses)

    def _service(self, namespace: str, name: str) -> Object | None:
        return self._services.get(name, namespace)

    def _endpoint_slices(self, namespace: str, name: str) -> list[Object]:
        return self._slices.by_index("service", f"{namespace}/{name}")

    async def _report(self, decisions: list[admission.Decision]) -> None:
        """Write hosts and status where they are not as they should be."""
        canonical = f"router-{admission.ROUTER_NAME}.{self.domain}" if self.domain else ""
        slots = asyncio.Semaphore(PARALLEL_WRITES)

        async def one(decision: admission.Decision) -> None:
            route = self._routes.get_key(decision.key)
            if route is None or route["metadata"].get("deletionTimestamp"):
                return
            async with slots:
                await self._write(route, decision, canonical)

        results = await asyncio.gather(*(one(decision) for decision in decisions), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _write(self, route: Object, decision: admission.Decision, canonical: str) -> None:
        namespace, name = route["metadata"].get("namespace"), route["metadata"]["name"]
        try:
            if decision.host and not (route.get("spec") or {}).get("host"):
                body = {"spec": {"host": decision.host}, "metadata": {"annotations": {GENERATED: "true"}}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, manager=MANAGER)
                self._routes.observe(route)
            wanted = admission.status_of(route, decision, now(), canonical)
            if wanted != ((route.get("status") or {}).get("ingress") or []):
                body = {"status": {"ingress": wanted}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, subresource="status", manager=MANAGER)
                self._routes.observe(route)
        except NotFound:
            return
