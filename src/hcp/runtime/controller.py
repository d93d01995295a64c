"""The loop that turns changes into passes: watch → key → reconcile, with backoff and metrics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError
from hcp.kube.errors import Conflict, Unreachable
from hcp.runtime import metrics
from hcp.runtime.informer import Informer
from hcp.runtime.queue import AGAIN, FRESH, WorkQueue
from hcp.runtime.store import key_of

log = logging.getLogger(__name__)

UNREACHABLE_CAP = 5.0

DURATION = metrics.Histogram("hcp_reconcile_duration_seconds", "Time of one pass, by controller.", ["controller"])
RESULTS = metrics.Counter("hcp_reconcile_total", "Passes, by controller and result.", ["controller", "result"])
DEPTH = metrics.Gauge("hcp_queue_depth", "Keys waiting for a pass, by controller.", ["controller"])
WAITED = metrics.Histogram("hcp_queue_wait_seconds", "Time a key waited for its pass, by controller.", ["controller"])


@dataclass(frozen=True, slots=True)
class Result:
    """What a pass asks for. Prefer a watch over `requeue_after`: use it for things with a date, not to poll."""

    requeue_after: float | None = None


Reconcile = Callable[[str], Awaitable[Result | None]]
Mapper = Callable[[dict[str, Any]], Iterable[str]]


def namespace_of(key: str) -> str:
    """Whose a key `namespace/name` is: passes over the clusters of one team leave workers to the others."""
    return key.partition("/")[0]


class Controller:
    """Runs `reconcile(key)` for every key that something happened to."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        workers: int = 8,
        *,
        base_delay: float = 0.1,
        max_delay: float = 60.0,
        # Less than what is left of the operator's lease when it could not be renewed: nobody else has begun by then.
        grace: float = 7.0,
        group: Callable[[str], str] | None = None,
        per_group: int = 0,
    ) -> None:
        """`group` says whose a key is; of the workers, each owner gets `per_group` at most."""
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._grace = grace
        self._informers: list[Informer] = []
        self._stopping = asyncio.Event()
        # What this one adds to the number that is told of all with its name.
        self._counted = 0
        self.queue = WorkQueue(
            base_delay=base_delay, max_delay=max_delay, on_wait=self._waited, group=group, per_group=per_group
        )

    def enqueue(self, key: str, *, fresh: bool = True) -> None:
        """Ask for a pass over this key."""
        self.queue.add(key, FRESH if fresh else AGAIN)
        self._count(len(self.queue))

    def enqueue_after(self, key: str, seconds: float) -> None:
        self.queue.add_after(key, seconds)

    def watch(
        self, informer: Informer, mapper: Mapper | None = None, *, reads: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        """Ask for a pass whenever an object of this kind changes; `mapper` says over which keys (default: its own).

        `reads` gives what the pass reads of an object: while that stays the same, a change asks for nothing.
        """
        to_keys: Mapper = mapper or (lambda obj: (key_of(obj),))

        def listener(old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
            if reads is not None and old and new and old is not new and reads(old) == reads(new):
                return
            fresh = not informer.replaying
            keys = set(to_keys(new)) if new is not None else set()
            if old is not None and old is not new:
                keys.update(to_keys(old))
            for key in keys:
                self.enqueue(key, fresh=fresh)

        informer.add_listener(listener)
        self._informers.append(informer)

    async def run(self) -> None:
        """Work until `stop` or cancellation; the passes under way get some seconds to end."""
        await asyncio.gather(*(i.wait_synced() for i in self._informers))
        workers = [asyncio.create_task(self._work(), name=f"{self.name} worker {n}") for n in range(self._workers)]
        try:
            await self._stopping.wait()
        finally:
            self.queue.close()
            _, late = await asyncio.wait(workers, timeout=self._grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
            self._count(0)

    def stop(self) -> None:
        self._stopping.set()

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            self._count(len(self.queue))
            started = time.monotonic()
            try:
                result = await self._reconcile(key)
            except asyncio.CancelledError:
                raise
            except Exception as exc:
                self._failed(key, exc)
            else:
                self.queue.forgive(key)
                RESULTS.inc(controller=self.name, result="success")
                if result is not None and result.requeue_after is not None:
                    self.queue.add_after(key, max(result.requeue_after, 0.0))
            finally:
                DURATION.observe(time.monotonic() - started, controller=self.name)
                self.queue.done(key)

    def _failed(self, key: str, exc: Exception) -> None:
        # An API server that is away is no fault of this key: be back soon after it is.
        delay = self.queue.retry(key, UNREACHABLE_CAP if isinstance(exc, Unreachable) else None)
        facts = {"controller": self.name, "key": key, "retry_in": round(delay, 2)}
        if isinstance(exc, Conflict):
            # Somebody else was quicker; the next pass sees what they wrote.
            RESULTS.inc(controller=self.name, result="conflict")
            log.debug("conflict, trying again", extra={**facts, "error": str(exc)})
            return
        RESULTS.inc(controller=self.name, result="error")
        if isinstance(exc, HcpError):
            log.warning("pass failed", extra={**facts, "error": str(exc), "hint": exc.hint})
        else:
            log.error("pass failed", extra=facts, exc_info=exc)

    def _count(self, waiting: int) -> None:
        DEPTH.inc(waiting - self._counted, controller=self.name)
        self._counted = waiting

    def _waited(self, seconds: float) -> None:
        WAITED.observe(seconds, controller=self.name)
