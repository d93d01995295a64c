"""Gateways and their routes beside Routes and Ingresses: followed from the moment their kinds exist, and not before."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.kube import Client, Resource
from hcp.kube import resources as r
from hcp.kube.errors import Invalid, NotFound
from hcp.router.admission import Decision, key_of
from hcp.router.gateway import listeners, matches, status, translate
from hcp.router.ingresses import ANY_HOST
from hcp.runtime import Informer
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MANAGER = "hcp-router"
# The kind whose coming starts all of this.
FIRST = r.HTTPROUTES
ROUTES = {"HTTPRoute": r.HTTPROUTES, "TLSRoute": r.TLSROUTES}
Object = dict[str, Any]
Services = Callable[[str, str], Object | None]


class Gateways:
    """What is known of the Gateway API in one cluster."""

    def __init__(self, client: Client, changed: Callable[[Object | None, Object | None], None]) -> None:
        self._client = client
        self._changed = changed
        self._kinds = Informer(client, r.CRDS, fields=f"metadata.name={FIRST.full_name}", transform=_name_only)
        self._kinds.add_listener(self._kind)
        self._of: dict[Resource, Informer] = {}
        self._starting: asyncio.Task[None] | None = None
        self._attached: dict[tuple[str, str], list[translate.Attached]] = {}
        self._listeners: dict[str, list[listeners.Listener]] = {}

    async def start(self) -> None:
        """One watch for one definition: all that a cluster without the Gateway API pays."""
        await self._kinds.start()
        await self._kinds.wait_synced()
        if self._starting is not None:
            await self._starting
        # Nobody may be given a host before all are known who might have it already.
        for kind, informer in self._of.items():
            if await self._client.has(kind):
                await informer.wait_synced()

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._starting
        for informer in (self._kinds, *self._of.values()):
            await informer.stop()

    def _kind(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and not self._of:
            kinds = (r.GATEWAYCLASSES, r.GATEWAYS, r.HTTPROUTES, r.TLSROUTES, r.REFERENCEGRANTS, r.NAMESPACES)
            self._of = {kind: Informer(self._client, kind) for kind in kinds}
            self._starting = asyncio.get_running_loop().create_task(self._follow(), name="gateways")

    async def _follow(self) -> None:
        for informer in self._of.values():
            informer.add_listener(self._changed)
            await informer.start()

    def _list(self, kind: Resource) -> Iterable[Object]:
        return self._of[kind].list() if kind in self._of else ()

    def _class(self, gateway: Object) -> Object | None:
        found = self._of[r.GATEWAYCLASSES].get(str(at(gateway, "spec.gatewayClassName")))
        return found if listeners.is_ours(found) else None

    def routes(self, secrets: listeners.Secrets, service: Services) -> dict[str, Object]:
        """What they mean as Routes, by key."""
        self._attached, self._listeners = {}, {}
        if not self._of:
            return {}
        known = list(self._list(r.REFERENCEGRANTS))
        ours = [one for one in self._list(r.GATEWAYS) if self._class(one) is not None]
        for one in ours:
            with _harmless(one):
                self._listeners[key_of(one)] = listeners.of_gateway(one, secrets, known)
        world = translate.World(self._listeners, self._of[r.NAMESPACES].get, service, known)
        found: dict[str, Object] = {}
        for kind, resource in ROUTES.items():
            for live in self._list(resource):
                with _harmless(live):
                    attached = self._attached[kind, key_of(live)] = translate.attach(live, kind, world)
                    found |= {key_of(made): made for one in attached for made in one.routes}
        matches.choose(found.values())
        return found

    def any_host(self) -> bool:
        """Whether an administrator lets routes of our classes answer for names that nobody claims."""
        classes = (one for one in self._list(r.GATEWAYCLASSES) if listeners.is_ours(one))
        return any(annotations_of(one).get(ANY_HOST) == "true" for one in classes)

    def waited_for(self, domains: Iterable[str]) -> set[str]:
        """Names that listeners wait for, whether a route has them or not."""
        found = [one for of_gateway in self._listeners.values() for one in of_gateway]
        return listeners.waited_for(found, tuple(domains), any_host=self.any_host())

    def any_certificate(self) -> tuple[str, str] | None:
        """What is shown for names that nobody has: that of the listener for any name, where one may be."""
        found = [one for _, every in sorted(self._listeners.items()) for one in every if one.works and not one.hostname]
        pairs = [one.certificate for one in found if one.certificate is not None]
        return pairs[0] if pairs and self.any_host() else None

    async def report(self, decisions: Iterable[Decision], where: str) -> None:
        """Say what became of each, where it is not said yet."""
        if not self._of:
            return
        stamp, by_owner = now(), _by_owner(decisions)
        for one in self._list(r.GATEWAYCLASSES):
            if listeners.is_ours(one):
                said = status.of_class(one, stamp)
                try:
                    await self._write(r.GATEWAYCLASSES, one, said)
                except Invalid:
                    # Definitions of another version have features in another form, or none.
                    await self._write(r.GATEWAYCLASSES, one, {"conditions": said["conditions"]})
        for kind, resource in ROUTES.items():
            for live in self._list(resource):
                attached = self._attached.get((kind, key_of(live)), [])
                refused = _refused(by_owner.get(key_of(live), []))
                wanted = status.of_route(live, attached, refused, stamp)
                if wanted or at(live, "status.parents"):
                    await self._write(resource, live, {"parents": wanted})
        counts = self._counts()
        for gateway in self._list(r.GATEWAYS):
            key = key_of(gateway)
            if key in self._listeners:
                body = status.of_gateway(gateway, self._listeners[key], counts.get(key, {}), where, stamp)
                await self._write(r.GATEWAYS, gateway, body)

    def _counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for attached in self._attached.values():
            for one in {(each.gateway, each.name) for each_ in attached for each in each_.listeners}:
                of_gateway = found.setdefault(one[0], {})
                of_gateway[one[1]] = of_gateway.get(one[1], 0) + 1
        return found

    async def _write(self, resource: Resource, live: Object, wanted: Object) -> None:
        have = live.get("status") or {}
        if live["metadata"].get("deletionTimestamp") or all(have.get(key) == value for key, value in wanted.items()):
            return
        meta = live["metadata"]
        with contextlib.suppress(NotFound):
            written = await self._client.patch(
                resource, meta["name"], meta.get("namespace"), {"status": wanted}, subresource="status", manager=MANAGER
            )
            self._of[resource].observe(written)


@contextlib.contextmanager
def _harmless(live: Object) -> Iterator[None]:
    """An object that its definition should not have let in is left out, and costs the others nothing."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        log.warning("an object cannot be read", extra={"object": key_of(live), "error": str(error)})


def _by_owner(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    found: dict[str, list[Decision]] = {}
    for one in decisions:
        if owner := translate.owner_of(one.key):
            found.setdefault(owner, []).append(one)
    return found


def _refused(decisions: list[Decision]) -> status.Refusal | None:
    """Why some of it is not served, or nothing of it."""
    refused = [one for one in decisions if not one.admitted]
    if not refused:
        return None
    return status.Refusal(refused[0].reason, refused[0].message, whole=len(refused) == len(decisions))


def _name_only(crd: Object) -> Object:
    """Definitions are large, and only their being there matters."""
    meta = crd["metadata"]
    return {"metadata": {key: meta[key] for key in ("name", "uid", "resourceVersion") if key in meta}}
