"""Follows Routes, Services and EndpointSlices, and makes HAProxy and the Routes' status agree with them.

A pass looks at what changed and nothing else: one Route among thousands costs what it costs alone.
"""

from __future__ import annotations

import asyncio
import logging
import time

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.transport import backoff
from hcp.router import admission, backends, maps, terminating
from hcp.router.book import Book
from hcp.router.changes import Changes
from hcp.router.claims import Route
from hcp.router.gateway import listeners, translate
from hcp.router.haproxy import HAProxy
from hcp.router.keys import Certificate
from hcp.router.refused import Refused
from hcp.router.reports import MAX_RETRY, RETRY, Reports
from hcp.router.sleepers import Sleepers, sleeps_since
from hcp.router.sources import Sources
from hcp.router.tables import Tables
from hcp.runtime import metrics

log = logging.getLogger(__name__)
# Changes come in bursts (a Deployment's pods): wait this long for the rest of one.
SETTLE = 0.02
# However often Routes are edited, at least as long is rested as was worked, up to this.
MAX_REST = 2.0
# Whose the rows are that say what listeners of Gateways wait for: no Route has such a name.
WAITING = "~listeners"
# Whose the default certificate is where a Gateway shows another one for names that nobody has.
OWN = "~default"

ROUTES = metrics.Gauge("hcp_router_routes", "Routes, by whether they are served.", ["admitted"])
PUSHES = metrics.Counter("hcp_router_table_changes_total", "Tables handed to HAProxy, by table.", ["table"])
STARTS = metrics.Gauge("hcp_router_haproxy_starts", "How often HAProxy was started.")


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
        self._certificate = certificate
        self._haproxy = haproxy
        self._domain = domain
        self._foreign_wildcards = foreign_wildcards
        self._changes = Changes()
        self._sources = Sources(client, self._changes, ends_tls=bool(certificate), ingress_class=ingress_class)
        self._book = Book()
        self._tables = Tables()
        self._reports = Reports(client, self._sources, self._book)
        self._refused = Refused()
        self.sleepers = Sleepers(self._reports.ask)
        # Which Routes lead to a Service, and to which Services a Route leads.
        self._led: dict[str, set[str]] = {}
        self._leads: dict[str, set[str]] = {}
        # Routes whose rows may not be right yet, and who else has to be told what became of them.
        self._due: set[str] = set()
        self._ingresses: set[str] = set()
        self._gateways = False
        self._failures = 0
        self.ready = False

    @property
    def domain(self) -> str:
        """The apps domain: the one given, else what the cluster's ingress configuration says."""
        return self._domain or self._sources.domain

    @property
    def _domains(self) -> tuple[str, ...]:
        """Names below these belong to all namespaces."""
        return tuple(one.lower() for one in (self.domain, self._sources.apps_domain) if one)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            await self._sources.start()
            while self._certificate and not await self._take_certificate():
                log.info("waiting for the default certificate", extra={"secret": self._certificate})
                self._changes.any.clear()
                await self._changes.any.wait()
            await self._haproxy.start()
            if self._haproxy.settings.wakes:
                await self.sleepers.start(self._haproxy.settings.wake_socket)
            self._reports.start()
            await self._pass()
            while True:
                await self._changes.any.wait()
                await asyncio.sleep(SETTLE)
                started = time.monotonic()
                await self._pass()
                await asyncio.sleep(min(time.monotonic() - started, MAX_REST))
        finally:
            self.ready = False
            await self.sleepers.stop()
            await self._reports.stop()
            await self._sources.stop()
            await self._haproxy.close()

    async def _take_certificate(self) -> bool:
        """Hand the default certificate over, if there is one by now; another one is taken while HAProxy runs."""
        pair = self._sources.certificate(self._certificate)
        if pair is None:
            return False
        own, keys = "\n".join(pair), self._haproxy.keys
        instead = self._sources.any_certificate()
        if self._haproxy.alive and self.domain:
            # Names of the cluster itself keep its own certificate.
            aside = {OWN: Certificate(f"*.{self.domain}", own)} if instead else {}
            instead = "" if await keys.push([OWN], aside, {}) else instead
        await keys.set_default(instead or own)
        return True

    async def _pass(self) -> None:
        self._read(self._changes.take())
        try:
            if self._certificate:
                await self._take_certificate()
            await self._serve()
            self._failures = 0
        except (HcpError, OSError, TimeoutError) as error:
            self._failures += 1
            pause = backoff(self._failures, base=RETRY, cap=MAX_RETRY)
            log.error("a pass failed, trying again", extra={"error": str(error), "pause": round(pause, 1)})
            asyncio.get_running_loop().call_later(pause, self._changes.any.set)
        STARTS.set(self._haproxy.starts)

    def _read(self, changes: Changes) -> None:
        """Take in what changed. Routes that it touches are to be served and told."""
        for key, route in self._sources.changed(changes).items():
            self._refused.keep(key, route)
            self._book.put(key, route)
            self._lead(key)
            self._due.add(key)
        for service in changes.services:
            self._due |= self._led.get(service, set())
        self._ingresses |= changes.ingresses
        self._gateways = self._gateways or changes.gateways

    def _lead(self, key: str) -> None:
        """Write down which Services a Route leads to."""
        for service in self._leads.pop(key, set()):
            self._led[service].discard(key)
            if not self._led[service]:
                del self._led[service]
        try:
            found = backends.services_of(self._book.routes[key]) if key in self._book.routes else set()
        except (TypeError, AttributeError):
            # Not of our Route kind: it has no target that can be found.
            found = set()
        if found:
            self._leads[key] = found
        for service in found:
            self._led.setdefault(service, set()).add(key)

    async def _serve(self) -> None:
        """Give HAProxy its tables, without the Routes it does not take."""
        book = self._book
        policy = admission.Policy(
            self.domain,
            self._foreign_wildcards,
            bool(self._certificate),
            self._sources.any_host,
            self._sources.apps_domain,
        )
        book.follow(policy)
        if self._gateways and self._sources.gateways is not None:
            waited_for = self._sources.gateways.waited_for(self._domains)
            self._tables.put(WAITING, {(maps.LISTENERS, name): "1" for name in waited_for})
        while True:
            self._due |= book.decide(self._refused.words)
            for key in self._due:
                self._tables.put(key, self._rows(key))
            bad = await self._hand_over()
            if not bad:
                break
            for key, words in bad.items():
                self._refused.add(book.routes[key], words)
                book.again(key)
        self.ready = True
        self.sleepers.settle()
        book.remember(self._due)
        ROUTES.set(book.admitted, admitted="true")
        ROUTES.set(len(book.routes) - book.admitted, admitted="false")
        self._reports.due(self._due, self._ingresses, self.domain, gateways=self._gateways)
        self._due, self._ingresses, self._gateways = set(), set(), False

    async def _hand_over(self) -> dict[str, str]:
        """Tell HAProxy of keys and rows. The answer: Routes that it does not take, and its words."""
        if self._certificate:
            decisions = [one for key in self._due if (one := self._book.decisions.get(key)) is not None]
            brought = terminating.keys(decisions, self._book.routes)
            if bad := await self._haproxy.keys.push(self._due, *brought):
                return bad
        pushed = await self._haproxy.push(self._tables)
        for name in pushed.changed:
            PUSHES.inc(table=name)
        return {key: words for row, words in pushed.refused.items() for key in self._tables.owners(row)}

    def _rows(self, key: str) -> maps.Rows:
        """What HAProxy is told of a Route: nothing of one that is gone or has not got its host."""
        route, decision = self._book.routes.get(key), self._book.decisions.get(key)
        if route is None or decision is None or not decision.admitted:
            self.sleepers.put(key, "", "")
            return maps.Rows()
        try:
            addresses = backends.of_route(route, self._sources.service, self._sources.slices)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            # Not of our Route kind, or it would have been refused: it has no target that can be found.
            log.warning("targets cannot be read", extra={"route": key, "error": str(error)})
            addresses = []
        since = sleeps_since(route) if self._haproxy.settings.wakes else ""
        http2 = bool(addresses) and self._speaks_http2(route)
        # Nobody has all names below a domain that belongs to all.
        deep = bool(translate.owner_of(key)) and not listeners.covers(decision.name, self._domains)
        rows = maps.rows_of(decision, route, addresses, http2=http2, asleep=bool(since), deep=deep)
        self.sleepers.put(key, decision.name if (maps.TLS_ASLEEP, decision.name) in rows else "", since)
        return rows

    def _speaks_http2(self, route: Route) -> bool:
        try:
            return backends.speaks_http2(route, self._sources.service)
        except (TypeError, ValueError, AttributeError, KeyError):
            return False
