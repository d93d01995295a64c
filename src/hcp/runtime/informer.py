"""A live copy of one kind: list once, then follow the watch, and tell listeners what changed.

Reading from it costs nothing and asks nobody. It survives everything an API server does: a dropped stream continues
from the last bookmark, a compacted version (410) lists again and reports only the differences, an absent server is
tried again with growing, jittered pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube.errors import Forbidden, Gone, NotFound, Unauthorized
from hcp.kube.transport import backoff
from hcp.runtime import metrics, selectors
from hcp.runtime.store import Keys, Object, Objects, Store, key_of, version_of

Listener = Callable[[Object | None, Object | None], None]
log = logging.getLogger(__name__)

RESTARTS = metrics.Counter("hcp_informer_restarts_total", "Lists made, after the first, by kind.", ["kind", "reason"])
OBJECTS = metrics.Gauge("hcp_informer_objects", "Objects held in memory, by kind.", ["kind"])
# A kind that is not installed is looked for again at this pace.
MISSING_KIND_CAP = 30.0
FAILURE_CAP = 20.0
# A stream that lasted this long was healthy: its end is no failure.
HEALTHY_AFTER = 5.0
# A page of the largest objects there can be fits into some 30 MB.
SMALL_PAGE = 20


class Informer:
    """The shared cache of one kind in one cluster, optionally of one namespace or selector."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        ns: str | None = None,
        labels: str | None = None,
        *,
        fields: str | None = None,
        transform: Callable[[Object], Object] | None = None,
        resync: float | None = None,
        most: int | None = None,
        keep: Callable[[Object], bool] | None = None,
    ) -> None:
        """`transform` keeps of an object what is used; `most` is how many are kept at all; `keep` says which.

        With `most`, objects are listed in small pages: they are somebody else's, as many and as large as they like.
        """
        self.client = client
        self.resource = resource
        self.ns = ns
        self.labels = labels
        self.fields = fields
        # True while listeners are told about things that did not just change: the first list, or a resync.
        self.replaying = False
        self._resync = resync
        self._most = most
        self._keep = keep
        # What this one adds to the number that is told of all that follow its kind.
        self._counted = 0
        self._store = Store(transform)
        self._listeners: list[Listener] = []
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._version = ""

    # lifecycle

    async def start(self) -> None:
        """Begin following; returns at once. Starting twice is harmless."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"informer {self.resource}")
            self._schedule_resync()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._count(0)

    async def wait_synced(self) -> None:
        """Wait until the first complete list is in memory."""
        await self._synced.wait()

    @property
    def synced(self) -> bool:
        return self._synced.is_set()

    # reading

    def get(self, name: str, ns: str | None = None) -> Object | None:
        """The object as last seen. Do not change it: it is shared."""
        return self._store.get(f"{ns}/{name}" if ns else name)

    def get_key(self, key: str) -> Object | None:
        """The object of a queue key (`ns/name`, or `name` for kinds without namespaces)."""
        return self._store.get(key)

    def list(self, ns: str | None = None) -> Objects:
        return self._store.list(ns)

    def keys(self) -> Keys:
        return self._store.keys()

    def add_index(self, name: str, fn: Callable[[Object], Iterable[str]]) -> None:
        """Look objects up by something else than their name; adding the same name twice keeps the first."""
        self._store.add_index(name, fn)

    def by_index(self, name: str, key: str) -> Objects:
        return self._store.by_index(name, key)

    def add_listener(self, fn: Listener) -> None:
        """Call `fn(old, new)` on each change; old is None for a new object, new is None for a deleted one.

        A listener added late hears of everything that is already here.
        """
        self._listeners.append(fn)
        if self.synced:
            self._replay([fn])

    def covers(self, obj: Object) -> bool:
        """Whether this object would surely be here if it existed: it is of our namespace and fits our selector."""
        if not self.synced or self.fields:
            return False
        if self.ns is not None and (obj.get("metadata") or {}).get("namespace") != self.ns:
            return False
        return selectors.matches(self.labels, obj) and self._keeps(obj)

    def observe(self, obj: Object) -> None:
        """Take in an object that a write just returned, so the next pass reads its own writes."""
        if not self.covers(obj):
            return
        if self._version.isdigit() and version_of(obj) <= int(self._version):
            return  # the watch is already past this; the object may even be deleted again
        if self._store.is_newer(obj):
            old, new = self._store.put(obj)
            self._tell(old, new)

    # following

    async def _run(self) -> None:
        attempt = 0
        while True:
            started = time.monotonic()
            cap = FAILURE_CAP
            try:
                if not self._version:
                    await self._list()
                await self._follow()
                attempt = 0 if time.monotonic() - started >= HEALTHY_AFTER else attempt + 1
            except Gone:
                log.info("watch is too old, listing again", extra={"kind": str(self.resource)})
                RESTARTS.inc(kind=str(self.resource), reason="gone")
                self._version = ""
                attempt += 1
            except NotFound:
                self._forget_all()
                cap = MISSING_KIND_CAP
                attempt += 1
            except HcpError as exc:
                attempt = attempt + 1 if time.monotonic() - started < HEALTHY_AFTER else 1
                refused = isinstance(exc, Forbidden | Unauthorized) and attempt == 1
                level = logging.WARNING if refused or attempt in (3, 10) else logging.DEBUG
                facts = {"kind": str(self.resource), "error": str(exc), "hint": exc.hint}
                log.log(level, "cannot watch, trying again", extra=facts)
            except Exception:
                # Whatever it is, a cache that silently stops following is worse.
                log.exception("watching failed, listing again", extra={"kind": str(self.resource)})
                RESTARTS.inc(kind=str(self.resource), reason="error")
                self._version = ""
                attempt += 1
            if attempt:
                await asyncio.sleep(backoff(attempt, base=0.05, cap=cap))

    async def _list(self) -> None:
        items, version = await self._all()
        changes = self._store.replace(items)
        self._count(len(self._store))
        self._version = version
        first = not self.synced
        self.replaying = first
        try:
            for old, new in changes:
                self._tell(old, new)
        finally:
            self.replaying = False
        self._synced.set()

    async def _all(self) -> tuple[Objects, str]:
        where = (self.resource, self.ns, self.labels, self.fields)
        if self._most is None and self._keep is not None:
            # Page by page: what others keep is never here all at once.
            return await self._kept(where)
        if self._most is None:
            # The first list may come from the server's memory; after 410 only etcd is surely newer than what we have.
            return await self.client.list_with_version(*where, from_cache=not self.synced)
        items: Objects = []
        version = ""
        async with contextlib.aclosing(self.client.pages(*where, size=SMALL_PAGE)) as pages:
            async for page, listed in pages:
                version = listed
                items += [self._store.kept(one) for one in page]
                if len(items) > self._most:
                    facts = {"kind": str(self.resource), "server": self.client.server, "most": self._most}
                    log.warning("there are more objects than are followed", extra=facts)
                    del items[self._most :]
                    break
        return items, version

    async def _kept(self, where: tuple[Resource, str | None, str | None, str | None]) -> tuple[Objects, str]:
        items: Objects = []
        version = ""
        async with contextlib.aclosing(self.client.pages(*where)) as pages:
            async for page, listed in pages:
                version = listed
                items += [one for one in page if self._keeps(one)]
        return items, version

    def _keeps(self, obj: Object) -> bool:
        return self._keep is None or self._keep(obj)

    def _count(self, objects: int) -> None:
        OBJECTS.inc(objects - self._counted, kind=str(self.resource))
        self._counted = objects

    def _has_room(self, obj: Object) -> bool:
        return self._most is None or len(self._store) < self._most or self._store.get(key_of(obj)) is not None

    async def _follow(self) -> None:
        stream = self.client.watch(self.resource, self.ns, self.labels, self.fields, self._version)
        async with contextlib.aclosing(stream):
            async for kind, obj in stream:
                self._take(kind, obj)

    def _take(self, kind: str, obj: Object) -> None:
        version = str((obj.get("metadata") or {}).get("resourceVersion") or "")
        if kind in ("ADDED", "MODIFIED") and not self._keeps(obj):
            kind = "DELETED"  # not ours, or not any more
        if kind in ("ADDED", "MODIFIED"):
            if self._store.is_newer(obj) and self._has_room(obj):
                old, new = self._store.put(obj)
                self._tell(old, new)
        elif kind == "DELETED":
            old = self._store.remove(key_of(obj))
            if old is not None:
                self._tell(old, None)
        if kind != "MODIFIED":
            self._count(len(self._store))
        if version:
            self._version = version

    def _forget_all(self) -> None:
        """The kind itself is not there (yet): an empty cache is the truth."""
        self._version = ""
        for old, new in self._store.replace([]):
            self._tell(old, new)
        self._synced.set()

    def _tell(self, old: Object | None, new: Object | None) -> None:
        for listener in self._listeners:
            self._tell_one(listener, old, new)

    def _tell_one(self, listener: Listener, old: Object | None, new: Object | None) -> None:
        try:
            listener(old, new)
        except Exception:
            log.exception("a listener failed", extra={"kind": str(self.resource), "key": key_of(new or old or {})})

    def _replay(self, listeners: Iterable[Listener]) -> None:
        self.replaying = True
        try:
            for obj in self._store.list(None):
                for listener in listeners:
                    self._tell_one(listener, obj, obj)
        finally:
            self.replaying = False

    def _schedule_resync(self) -> None:
        if self._resync is not None:
            self._timer = asyncio.get_running_loop().call_later(self._resync, self._do_resync)

    def _do_resync(self) -> None:
        """Go through everything again from memory, without asking the server."""
        self._replay(self._listeners)
        self._schedule_resync()


def name_and_namespace(key: str) -> tuple[str, str | None]:
    """Split a queue key into (name, namespace)."""
    ns, _, name = key.rpartition("/")
    return name, ns or None


def owner_key(kind: str) -> Callable[[Any], Iterable[str]]:
    """A mapper for `Controller.watch`: the key of the owner of this kind, from ownerReferences."""

    def mapper(obj: Any) -> Iterable[str]:
        meta = obj.get("metadata") or {}
        ns = meta.get("namespace")
        for ref in meta.get("ownerReferences") or ():
            if ref.get("kind") == kind:
                yield f"{ns}/{ref['name']}" if ns else ref["name"]

    return mapper
