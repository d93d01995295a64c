"""Follows Routes, Services and EndpointSlices, and makes HAProxy and the Routes' status agree with them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at, labels_of
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, Invalid, NotFound
from hcp.kube.transport import backoff
from hcp.router import admission, backends, claims, ingresses, maps, terminating
from hcp.router.gateway import translate
from hcp.router.gateway.follow import Gateways
from hcp.router.haproxy import HAProxy
from hcp.router.refused import Refused
from hcp.runtime import EventRecorder, Informer, metrics
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MANAGER = "hcp-router"
SERVICE_LABEL = "kubernetes.io/service-name"
GENERATED = "openshift.io/host.generated"
# Changes come in bursts (a Deployment's pods): wait this long for the rest of one.
SETTLE = 0.02
# However often Routes are edited, at least as long is rested as was worked, up to this.
MAX_REST = 2.0
RETRY = 1.0
MAX_RETRY = 60.0
PARALLEL_WRITES = 8

ROUTES = metrics.Gauge("hcp_router_routes", "Routes, by whether they are served.", ["admitted"])
PUSHES = metrics.Counter("hcp_router_table_changes_total", "Tables handed to HAProxy, by table.", ["table"])
STARTS = metrics.Gauge("hcp_router_haproxy_starts", "How often HAProxy was started.")

Object = dict[str, Any]


def _by_service(one: Object) -> Iterable[str]:
    name = labels_of(one).get(SERVICE_LABEL)
    return (f"{one['metadata'].get('namespace', '')}/{name}",) if name else ()


class Router:
    """The router of one cluster."""

    def __init__(
        self,
        client: Client,
        haproxy: HAProxy,
        domain: str = "",
        *,
        foreign_wildcards: bool = False,
        certificate: str = "",
        ingress_class: str = "",
    ) -> None:
        """`certificate`: namespace/name of a TLS Secret. With it the router ends TLS, and can serve Ingresses."""
        self._client = client
        self._certificate = certificate
        self._class = ingress_class
        # However many bad Routes a namespace has, only so many events are written of it.
        self._events = EventRecorder(client, MANAGER)
        self._ingress_words = terminating.Words(self._events)
        self._haproxy = haproxy
        self._domain = domain
        self._foreign_wildcards = foreign_wildcards
        self._granted: dict[str, claims.Claim] = {}
        self._refused = Refused()
        self._unwritable: dict[str, str] = {}
        self._failures = 0
        self._dirty = asyncio.Event()
        self._routes = Informer(client, r.ROUTES)
        self._services = Informer(client, r.SERVICES)
        self._slices = Informer(client, r.ENDPOINTSLICES)
        self._ingress = Informer(client, r.INGRESS_CONFIGS)
        self._slices.add_index("service", _by_service)
        # Only where it ends TLS; of Secrets no others than certificates are asked for.
        self._secrets = Informer(client, r.SECRETS, fields="type=kubernetes.io/tls")
        self._ingresses = Informer(client, r.INGRESSES)
        self._informers = [self._routes, self._services, self._slices, self._ingress]
        self._informers += [self._secrets] if certificate else []
        self._classes = Informer(client, r.INGRESSCLASSES)
        self._informers += [self._ingresses, self._classes] if ingress_class else []
        for informer in self._informers:
            informer.add_listener(self._changed)
        self._gateways = Gateways(client, self._changed) if certificate and ingress_class else None
        self.ready = False

    @property
    def domain(self) -> str:
        """The apps domain: the one given, else what the cluster's ingress configuration says."""
        if self._domain:
            return self._domain
        config = self._ingress.get("cluster") or {}
        return str(at(config, "spec.domain") or "")

    async def run(self) -> None:
        """Work until cancelled."""
        followed = [one for one in self._informers if one is not self._ingress]
        if not self._domain and await self._client.has(r.INGRESS_CONFIGS):
            followed.append(self._ingress)
        try:
            for informer in self._informers:
                await informer.start()
            for informer in followed:
                await informer.wait_synced()
            if self._gateways is not None:
                await self._gateways.start()
            while self._certificate and not await self._take_certificate():
                log.info("waiting for the default certificate", extra={"secret": self._certificate})
                self._dirty.clear()
                await self._dirty.wait()
            await self._haproxy.start()
            await self._pass()
            while True:
                await self._dirty.wait()
                await asyncio.sleep(SETTLE)
                self._dirty.clear()
                started = time.monotonic()
                await self._pass()
                await asyncio.sleep(min(time.monotonic() - started, MAX_REST))
        finally:
            self.ready = False
            for informer in self._informers:
                await informer.stop()
            if self._gateways is not None:
                await self._gateways.stop()
            await self._haproxy.close()

    def _changed(self, _old: Object | None, _new: Object | None) -> None:
        self._dirty.set()

    async def _take_certificate(self) -> bool:
        """Hand the default certificate over, if there is one by now; another one is taken while HAProxy runs."""
        pair = self._pair(*self._certificate.split("/", 1))
        if pair is not None:
            await self._haproxy.keys.set_default(f"{pair[0]}\n{pair[1]}")
        return pair is not None

    def _pair(self, namespace: str, name: str) -> tuple[str, str] | None:
        return terminating.pair_of(self._secrets.get(name, namespace))

    def _all_routes(self) -> dict[str, Object]:
        """Routes, and what Ingresses and Gateways mean as such."""
        found = {admission.key_of(route): route for route in self._routes.list()}
        if self._certificate:
            found = {key: terminating.with_external(route, self._pair) for key, route in found.items()}
        for one in self._own_ingresses():
            found |= {admission.key_of(route): route for route in ingresses.routes_of(one, self._pair)}
        return found | (self._gateways.routes(self._pair, self._service) if self._gateways else {})

    def _own_ingresses(self) -> list[Object]:
        return [one for one in self._ingresses.list() if ingresses.is_ours(one, self._class)] if self._class else []

    async def _pass(self) -> None:
        try:
            if self._certificate:
                await self._take_certificate()
            await self._report(await self._serve())
            self._failures = 0
        except (HcpError, OSError, TimeoutError) as error:
            self._failures += 1
            pause = backoff(self._failures, base=RETRY, cap=MAX_RETRY)
            log.error("a pass failed, trying again", extra={"error": str(error), "pause": round(pause, 1)})
            asyncio.get_running_loop().call_later(pause, self._dirty.set)
        STARTS.set(self._haproxy.starts)

    async def _serve(self) -> list[admission.Decision]:
        """Give HAProxy its tables, without the Routes it does not take."""
        routes = self._all_routes()
        self._refused.keep(routes)
        while True:
            decisions, tables = self._compute(routes)
            if self._certificate and (bad := await self._haproxy.keys.push(*terminating.keys(decisions, routes))):
                for key, words in bad.items():
                    self._refused.add(routes[key], words)
                continue
            pushed = await self._haproxy.push(tables)
            for name in pushed.changed:
                PUSHES.inc(table=name)
            if not pushed.refused:
                break
            for row, words in pushed.refused.items():
                self._refused.add(routes[tables.owners[row]], words)
        self.ready = True
        self._remember(decisions, routes)
        return decisions

    def _compute(self, routes: Mapping[str, Object]) -> tuple[list[admission.Decision], maps.Maps]:
        policy = admission.Policy(self.domain, self._foreign_wildcards, bool(self._certificate), self._any_host())
        decisions = admission.decide(routes.values(), policy, self._granted, self._refused.words)
        admitted = {decision.key: routes[decision.key] for decision in decisions if decision.admitted}
        addresses = {key: self._addresses(route) for key, route in admitted.items()}
        http2 = {key for key, route in admitted.items() if addresses[key] and self._speaks_http2(route)}
        good = sum(decision.admitted for decision in decisions)
        ROUTES.set(good, admitted="true")
        ROUTES.set(len(decisions) - good, admitted="false")
        return decisions, maps.build(decisions, routes, addresses, http2)

    def _any_host(self) -> frozenset[str]:
        """Administrators say it of a class of Ingresses, or of Gateways."""
        ingress = bool(self._class) and ingresses.may_answer_for_any(self._classes.get(self._class))
        gateway = self._gateways is not None and self._gateways.any_host()
        return frozenset(([ingresses.KIND] if ingress else []) + ([translate.KIND] if gateway else []))

    def _addresses(self, route: Object) -> list[str]:
        try:
            return backends.of_route(route, self._service, self._endpoint_slices)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            # Not of our Route kind, or it would have been refused: it has no target that can be found.
            log.warning("targets cannot be read", extra={"route": admission.key_of(route), "error": str(error)})
            return []

    def _speaks_http2(self, route: Object) -> bool:
        try:
            return backends.speaks_http2(route, self._service)
        except (TypeError, ValueError, AttributeError, KeyError):
            return False

    def _remember(self, decisions: list[admission.Decision], routes: Mapping[str, Object]) -> None:
        """What was given is given, even while the API server cannot be told."""
        known, self._granted = self._granted, {}
        for decision in decisions:
            if decision.admitted:
                route = routes[decision.key]
                held = claims.held(route, decision.name, known)
                self._granted[claims.uid_of(route)] = held or claims.Claim(decision.name, now())

    def _service(self, namespace: str, name: str) -> Object | None:
        return self._services.get(name, namespace)

    def _endpoint_slices(self, namespace: str, name: str) -> list[Object]:
        return self._slices.by_index("service", f"{namespace}/{name}")

    async def _report(self, decisions: list[admission.Decision]) -> None:
        """Write hosts and status where they are not as they should be; who cannot be written to holds up nobody."""
        canonical = f"router-{claims.ROUTER_NAME}.{self.domain}" if self.domain else ""
        slots = asyncio.Semaphore(PARALLEL_WRITES)

        async def one(decision: admission.Decision) -> None:
            route = self._routes.get_key(decision.key)
            if route is None or route["metadata"].get("deletionTimestamp") or self._is_unwritable(route):
                return
            async with slots:
                try:
                    await self._write(route, decision, canonical)
                except (Invalid, Forbidden) as error:
                    # Asking again gives the same answer, until somebody changes the Route.
                    self._unwritable[claims.uid_of(route)] = str(route["metadata"].get("resourceVersion"))
                    log.warning("a Route cannot be written", extra={"route": decision.key, "error": str(error)})

        if self._class:
            await terminating.tell_ingresses(self._client, self._own_ingresses(), decisions, canonical)
            self._ingress_words.tell(self._own_ingresses(), decisions)
        if self._gateways is not None:
            await self._gateways.report(decisions, canonical)
        uids = {claims.uid_of(route) for route in self._routes.list()}
        self._unwritable = {uid: version for uid, version in self._unwritable.items() if uid in uids}
        results = await asyncio.gather(*(one(decision) for decision in decisions), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _is_unwritable(self, route: Object) -> bool:
        return self._unwritable.get(claims.uid_of(route)) == str(route["metadata"].get("resourceVersion"))

    async def _write(self, route: Object, decision: admission.Decision, canonical: str) -> None:
        namespace, name = route["metadata"].get("namespace"), route["metadata"]["name"]
        try:
            if decision.admitted and not at(route, "spec.host"):
                body = {"spec": {"host": decision.host}, "metadata": {"annotations": {GENERATED: "true"}}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, manager=MANAGER)
                self._routes.observe(route)
            wanted = admission.status_of(route, decision, self._since(route, decision), canonical)
            if wanted != (at(route, "status.ingress") or []):
                body = {"status": {"ingress": wanted}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, subresource="status", manager=MANAGER)
                self._routes.observe(route)
                if not decision.admitted:
                    self._events.event(route, "Warning", decision.reason, decision.message)
        except NotFound:
            return

    def _since(self, route: Object, decision: admission.Decision) -> str:
        given = self._granted.get(claims.uid_of(route))
        return given.since if decision.admitted and given is not None else now()
