"""Tells Routes, Ingresses and Gateways what became of them, beside the passes: nobody's host waits for a status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Any

from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, Invalid, NotFound
from hcp.kube.transport import backoff
from hcp.router import admission, claims, ingresses, terminating
from hcp.router.book import Book
from hcp.router.gateway import translate
from hcp.router.sleepers import sleeps_since
from hcp.router.sources import Sources
from hcp.runtime import EventRecorder
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MANAGER = "hcp-router"
GENERATED = "openshift.io/host.generated"
PARALLEL_WRITES = 8
RETRY, MAX_RETRY = 1.0, 60.0
Object = dict[str, Any]


class Reports:
    """Writes hosts and status where they are not as they should be; who cannot be written to holds up nobody."""

    def __init__(self, client: Client, sources: Sources, book: Book) -> None:
        self._client = client
        self._sources = sources
        self._book = book
        # However many bad Routes a namespace has, only so many events are written of it.
        self._events = EventRecorder(client, MANAGER)
        self._words = terminating.Words(self._events)
        self._canonical = ""
        self._due: set[str] = set()
        # Routes of clusters that sleep, which somebody asked for: the mark of that sleep.
        self._asked: dict[str, str] = {}
        self._ingresses: set[str] = set()
        self._gateways = False
        self._any = asyncio.Event()
        # By key of a Route: the version of it that the API server does not let us write to.
        self._unwritable: dict[str, tuple[str, str]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="router reports")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def due(self, keys: Iterable[str], changed: Iterable[str], domain: str, *, gateways: bool) -> None:
        """These Routes were decided or changed, and these Ingresses changed."""
        canonical = f"router-{claims.ROUTER_NAME}.{domain}" if domain else ""
        if canonical != self._canonical:
            self._canonical, keys, gateways = canonical, {*keys, *self._book.routes}, True
        for key in keys:
            if translate.owner_of(key):
                gateways = True
            elif owner := ingresses.owner_of(key):
                self._ingresses.add(owner)
            else:
                self._due.add(key)
        self._ingresses.update(changed)
        self._gateways = self._gateways or gateways
        self._any.set()

    def ask(self, key: str, since: str) -> None:
        """Somebody asked for a cluster that sleeps. Its Route says so once in a sleep, however many come."""
        route = self._sources.routes.get_key(key)
        if route is None or self._asked.get(key) == since:
            return  # it is gone, or under way: who connects again shortens no pause after a failure
        if annotations_of(route).get(names.MARK_ASKED_FOR) != since:
            self._asked[key] = since
            self._due.add(key)
            self._any.set()

    async def _run(self) -> None:
        failures = 0
        while True:
            await self._any.wait()
            self._any.clear()
            try:
                await self._all()
                failures = 0
            except (HcpError, OSError, TimeoutError) as error:
                failures += 1
                pause = backoff(failures, base=RETRY, cap=MAX_RETRY)
                log.error("a report failed, trying again", extra={"error": str(error), "pause": round(pause, 1)})
                asyncio.get_running_loop().call_later(pause, self._any.set)

    async def _all(self) -> None:
        """What is said is due no longer; what could not be said stays due."""
        while self._ingresses:
            await self._ingress(key := next(iter(self._ingresses)))
            self._ingresses.discard(key)
        gateways = self._sources.gateways
        if self._gateways and gateways is not None:
            self._gateways = False
            try:
                await gateways.report(self._book.decisions.values(), self._canonical)
            except BaseException:
                self._gateways = True
                raise
        slots = asyncio.Semaphore(PARALLEL_WRITES)
        results = await asyncio.gather(*(self._route(key, slots) for key in self._due), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _ingress(self, key: str) -> None:
        live = self._sources.own_ingress(key)
        made = (self._book.decisions.get(one) for one in self._sources.of_ingress(key))
        decisions = [one for one in made if one is not None]
        if live is not None:
            await terminating.tell_ingress(self._client, live, decisions, self._canonical)
        self._words.tell(key, live, decisions)

    async def _route(self, key: str, slots: asyncio.Semaphore) -> None:
        async with slots:
            self._due.discard(key)
            route, decision = self._sources.routes.get_key(key), self._book.decisions.get(key)
            if route is None or decision is None:
                self._unwritable.pop(key, None)
                self._asked.pop(key, None)
                return
            if route["metadata"].get("deletionTimestamp") or self._unwritable.get(key) == _version(route):
                return
            try:
                await self._write(route, decision)
            except (Invalid, Forbidden) as error:
                # Asking again gives the same answer, until somebody changes the Route.
                self._unwritable[key] = _version(route)
                log.warning("a Route cannot be written", extra={"route": key, "error": str(error)})
            except BaseException:
                self._due.add(key)
                raise

    async def _write(self, route: Object, decision: admission.Decision) -> None:
        namespace, name = route["metadata"].get("namespace"), route["metadata"]["name"]
        routes = self._sources.routes
        try:
            route = await self._say_asked(route)
            if decision.admitted and not at(route, "spec.host"):
                body = {"spec": {"host": decision.host}, "metadata": {"annotations": {GENERATED: "true"}}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, manager=MANAGER)
                routes.observe(route)
            wanted = admission.status_of(route, decision, self._since(route, decision), self._canonical)
            if wanted != (at(route, "status.ingress") or []):
                body = {"status": {"ingress": wanted}}
                route = await self._client.patch(r.ROUTES, name, namespace, body, subresource="status", manager=MANAGER)
                routes.observe(route)
                if not decision.admitted:
                    self._events.event(route, "Warning", decision.reason, decision.message)
        except NotFound:
            return

    async def _say_asked(self, route: Object) -> Object:
        """That somebody asked for a cluster, unless it is said already or another sleep has begun."""
        since, meta = self._asked.get(admission.key_of(route), ""), route["metadata"]
        if since and sleeps_since(route) == since != annotations_of(route).get(names.MARK_ASKED_FOR):
            body = {"metadata": {"annotations": {names.MARK_ASKED_FOR: since}}}
            route = await self._client.patch(r.ROUTES, meta["name"], meta["namespace"], body, manager=MANAGER)
            self._sources.routes.observe(route)
            log.info("a hosted API that sleeps was asked for", extra={"route": admission.key_of(route), "since": since})
        self._asked.pop(admission.key_of(route), None)
        return route

    def _since(self, route: Object, decision: admission.Decision) -> str:
        given = self._book.granted.get(claims.uid_of(route))
        return given.since if decision.admitted and given is not None else now()


def _version(route: Object) -> tuple[str, str]:
    return claims.uid_of(route), str(route["metadata"].get("resourceVersion"))
