"""Events: what a person should know about an object, told once and counted when it happens again.

What happens to an object in many different words is counted as well, after the first few; and of one namespace only so
many new events are written in a time. Whoever can cause events cannot fill the database with them.

Recording never holds up or fails a pass: it runs beside it, and a repeated event is written again only after some
minutes, with its count.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import time
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import EVENTS
from hcp.runtime import metrics
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MAX_MESSAGE = 1024
REPEAT_AFTER = 300.0
MAX_REMEMBERED = 4096
# So many different messages of one kind about one object, then they are counted as one.
MAX_SIMILAR = 10
SIMILAR_SECONDS = 600.0
COMBINED = "(combined from similar events) "
# New events of one namespace: so many at once, then one in so many seconds.
BURST, SECONDS_EACH = 50, 10.0

DROPPED = metrics.Counter("hcp_events_not_written_total", "Events left out because their namespace had so many.")


@dataclass(slots=True)
class _Seen:
    name: str
    ns: str
    count: int
    written: float
    first: str


class EventRecorder:
    """Writes Events in the name of one component."""

    def __init__(self, client: Client, component: str) -> None:
        self._client = client
        self._component = component
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._similar: dict[tuple[str, ...], tuple[float, set[str]]] = {}
        self._room: dict[str, tuple[float, float]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def event(self, obj: dict[str, Any], type: str, reason: str, message: str) -> asyncio.Task[None]:
        """Record; `type` is Normal or Warning. Nobody needs to await the result."""
        task = asyncio.get_running_loop().create_task(self._record(obj, type, reason, message[:MAX_MESSAGE]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def flush(self) -> None:
        """Wait for what is being written, before the process ends."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=5)

    async def _record(self, obj: dict[str, Any], type: str, reason: str, message: str) -> None:
        meta = obj.get("metadata") or {}
        about = (str(meta.get("uid") or ""), str(meta.get("name")), type, reason)
        combined = self._is_one_of_many(about, message)
        key = (*about, COMBINED if combined else message)
        message = f"{COMBINED}{message}"[:MAX_MESSAGE] if combined else message
        seen = self._seen.get(key)
        try:
            if seen is None:
                if not self._has_room(str(meta.get("namespace") or "default")):
                    DROPPED.inc()
                    return
                self._remember(key, meta)
                await self._client.create(self._new(obj, self._seen[key], type, reason, message))
                return
            seen.count += 1
            if time.monotonic() - seen.written < REPEAT_AFTER:
                return
            seen.written = time.monotonic()
            try:
                body = {"count": seen.count, "lastTimestamp": now(), "message": message}
                await self._client.patch(EVENTS, seen.name, seen.ns, body)
            except NotFound:  # events live an hour
                await self._client.create(self._new(obj, seen, type, reason, message))
        except HcpError as exc:
            self._seen.pop(key, None)
            log.debug("cannot record an event", extra={"reason": reason, "error": str(exc)})

    def _is_one_of_many(self, about: tuple[str, ...], message: str) -> bool:
        """Whether this object had many messages of this kind lately, each another one."""
        start, messages = self._similar.get(about, (0.0, set()))
        if time.monotonic() - start > SIMILAR_SECONDS:
            start, messages = time.monotonic(), set()
        if len(messages) < MAX_SIMILAR:
            messages.add(message)
        self._similar.pop(about, None)
        while len(self._similar) >= MAX_REMEMBERED:
            self._similar.pop(next(iter(self._similar)))
        self._similar[about] = (start, messages)
        return message not in messages

    def _has_room(self, namespace: str) -> bool:
        """Whether another new event of this namespace may be written now."""
        at = time.monotonic()
        level, last = self._room.pop(namespace, (float(BURST), at))
        level = min(float(BURST), level + (at - last) / SECONDS_EACH)
        while len(self._room) >= MAX_REMEMBERED:
            self._room.pop(next(iter(self._room)))
        self._room[namespace] = (level - 1 if level >= 1 else level, at)
        return level >= 1

    def _remember(self, key: tuple[str, ...], meta: dict[str, Any]) -> None:
        while len(self._seen) >= MAX_REMEMBERED:
            self._seen.pop(next(iter(self._seen)))
        digest = hashlib.sha256("\0".join((*key, str(time.time_ns()))).encode()).hexdigest()[:16]
        name = f"{str(meta.get('name') or 'object')[:200]}.{digest}"
        self._seen[key] = _Seen(name, str(meta.get("namespace") or "default"), 1, time.monotonic(), now())

    def _new(self, obj: dict[str, Any], seen: _Seen, type: str, reason: str, message: str) -> dict[str, Any]:
        meta = obj.get("metadata") or {}
        about = {
            "apiVersion": obj.get("apiVersion"),
            "kind": obj.get("kind"),
            "name": meta.get("name"),
            "namespace": meta.get("namespace"),
            "uid": meta.get("uid"),
            "resourceVersion": meta.get("resourceVersion"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": seen.name, "namespace": seen.ns},
            "involvedObject": {k: v for k, v in about.items() if v},
            "type": type,
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": socket.gethostname(),
            "firstTimestamp": seen.first,
            "lastTimestamp": now(),
            "count": seen.count,
        }
