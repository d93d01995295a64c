"""Events: what a person should know about an object, told once and counted when it happens again.

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
from hcp.runtime.conditions import now

log = logging.getLogger(__name__)
MAX_MESSAGE = 1024
REPEAT_AFTER = 300.0
MAX_REMEMBERED = 4096


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
        key = (str(meta.get("uid") or ""), str(meta.get("name")), type, reason, message)
        seen = self._seen.get(key)
        try:
            if seen is None:
                self._remember(key, meta)
                await self._client.create(self._new(obj, self._seen[key], type, reason, message))
                return
            seen.count += 1
            if time.monotonic() - seen.written < REPEAT_AFTER:
                return
            seen.written = time.monotonic()
            try:
                body = {"count": seen.count, "lastTimestamp": now()}
                await self._client.patch(EVENTS, seen.name, seen.ns, body)
            except NotFound:  # events live an hour
                await self._client.create(self._new(obj, seen, type, reason, message))
        except HcpError as exc:
            self._seen.pop(key, None)
            log.debug("cannot record an event", extra={"reason": reason, "error": str(exc)})

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
