"""Leader election on a Lease: one holder at a time, hand-over at once when the holder leaves in order.

Waiting is by watching the Lease, not by asking again: a released Lease is taken within milliseconds, one whose holder
died when its time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import LEASES
from hcp.kube.transport import backoff
from hcp.runtime.informer import Informer

log = logging.getLogger(__name__)


class LeaseLost(HcpError):
    """Somebody else leads now, or the API server could not be told in time that we still do."""


class Lease:
    """The right to lead, held under one name in one namespace."""

    def __init__(
        self,
        client: Client,
        name: str,
        ns: str,
        identity: str,
        *,
        duration: float = 15.0,
        renew_every: float = 5.0,
        annotations: Mapping[str, str | None] | None = None,
        temporary: bool = False,
    ) -> None:
        """`annotations` are written with it, None takes one away; a `temporary` one is deleted at the end."""
        self._client = client
        self.name = name
        self.ns = ns
        self.identity = identity
        self._duration = duration
        self._renew_every = renew_every
        self._annotations = dict(annotations or {})
        self._temporary = temporary
        self._held: dict[str, Any] | None = None

    @property
    def is_leader(self) -> bool:
        return self._held is not None

    async def run(self, lead: Callable[[], Awaitable[None]], *, again: bool = False) -> None:
        """Wait to become leader, run `lead`, keep renewing, release at the end.

        If the Lease is lost, `lead` is cancelled and LeaseLost raised, or with `again` the next turn is waited for.
        """
        while True:
            try:
                await self._lead_once(lead)
                return
            except LeaseLost as exc:
                if not again:
                    raise
                log.warning("no longer leading, waiting for the next turn", extra={"error": str(exc)})

    async def _lead_once(self, lead: Callable[[], Awaitable[None]]) -> None:
        await self.acquire()
        await self.hold(lead)

    async def hold(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run `lead` with the Lease that was just taken; it is given back after the last thing `lead` does."""
        work = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._keep())
        try:
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # To its end, whoever loses patience meanwhile: or it would be renewed for ever, and for nothing.
            ended = await asyncio.shield(asyncio.create_task(self._end(work, renewing)))
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    async def _end(
        self, work: asyncio.Future[None], renewing: asyncio.Future[None]
    ) -> tuple[BaseException | None, ...]:
        """Renewed until the work has ended: nobody else may begin before that."""
        work.cancel()
        await asyncio.wait({work}, timeout=self._duration)
        renewing.cancel()
        await asyncio.wait({renewing})
        if not work.done():
            raise LeaseLost(f"What was done under the lease {self.ns}/{self.name} did not end in time.")
        ended = await asyncio.gather(work, renewing, return_exceptions=True)
        await self.release()
        return ended

    async def acquire(self) -> None:
        """Return once we hold the Lease."""
        changed = asyncio.Event()
        informer = Informer(self._client, LEASES, self.ns, fields=f"metadata.name={self.name}")
        informer.add_listener(lambda _old, _new: changed.set())
        await informer.start()
        attempt = 0
        try:
            await informer.wait_synced()
            seen, since = "", time.monotonic()
            while True:
                lease = informer.get(self.name, self.ns)
                stamp = str((lease or {}).get("metadata", {}).get("resourceVersion"))
                if stamp != seen:
                    seen, since = stamp, time.monotonic()
                wait = self._remaining(lease, since)
                if wait <= 0:
                    try:
                        if await self.take(lease):
                            return
                        attempt = 0
                        wait = self._duration
                    except HcpError as exc:
                        attempt += 1
                        log.warning("cannot take the lease", extra={"lease": self.name, "error": str(exc)})
                        wait = backoff(attempt, base=0.5)
                changed.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await changed.wait()
        finally:
            await informer.stop()

    async def take(self, seen: dict[str, Any] | None) -> bool:
        """Take what was seen to be free, unless somebody was quicker."""
        try:
            self._held = await self._take(seen)
        except Conflict:
            return False
        log.info("leading", extra={"lease": self.name, "identity": self.identity})
        return True

    async def release(self) -> None:
        """Let the next one lead at once."""
        if self._held is None:
            return
        try:
            try:
                await self._give_back(self._held)
            except Conflict:
                # A renewal that nobody waited for any more may have got through.
                if await self._still_ours():
                    await self._give_back(self._held)
        except HcpError as exc:
            log.info("the lease was not released, it runs out", extra={"lease": self.name, "error": str(exc)})
        self._held = None

    async def _give_back(self, held: dict[str, Any]) -> None:
        if self._temporary:
            await self._client.delete(LEASES, self.name, self.ns, uid=held["metadata"]["uid"], missing_ok=True)
            return
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_now()}
        await self._client.replace({**held, "spec": {**held["spec"], **free}})

    def _remaining(self, lease: dict[str, Any] | None, since: float) -> float:
        """Seconds until the Lease may be taken, by our own clock: clocks of two machines differ."""
        spec = (lease or {}).get("spec") or {}
        holder = spec.get("holderIdentity")
        if not holder or holder == self.identity:
            return 0.0
        return since + float(spec.get("leaseDurationSeconds") or self._duration) - time.monotonic()

    async def _take(self, lease: dict[str, Any] | None) -> dict[str, Any]:
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, int(self._duration)),
            "acquireTime": _micro_now(),
            "renewTime": _micro_now(),
        }
        if lease is None:
            made = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": self._noted({"name": self.name, "namespace": self.ns}),
                "spec": {**spec, "leaseTransitions": 0},
            }
            return await self._client.create(made)
        before = lease.get("spec") or {}
        spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + 1
        return await self._client.replace({**lease, "metadata": self._noted(lease["metadata"]), "spec": spec})

    def _noted(self, meta: dict[str, Any]) -> dict[str, Any]:
        notes = {**(meta.get("annotations") or {}), **self._annotations}
        kept = {key: value for key, value in notes.items() if value is not None}
        return {**meta, "annotations": kept} if kept or "annotations" in meta else meta

    async def _keep(self) -> None:
        """Renew until it fails for good."""
        good_until = time.monotonic() + self._duration * 2 / 3
        attempt = 0
        while self._held is not None:
            await asyncio.sleep(self._renew_every if attempt == 0 else backoff(attempt, base=0.2, cap=2.0))
            try:
                async with asyncio.timeout(max(good_until - time.monotonic(), 0.5)):
                    spec = {**self._held["spec"], "renewTime": _micro_now()}
                    self._held = await self._client.replace({**self._held, "spec": spec})
                good_until, attempt = time.monotonic() + self._duration * 2 / 3, 0
            except (Conflict, NotFound):
                if not await self._still_ours():
                    self._held = None
                    raise LeaseLost(f"The lease {self.ns}/{self.name} was taken by another process.") from None
                attempt += 1
            except (HcpError, TimeoutError) as exc:
                attempt += 1
                if time.monotonic() >= good_until:
                    self._held = None
                    raise LeaseLost(
                        f"The lease {self.ns}/{self.name} could not be renewed in time", cause=str(exc)
                    ) from exc

    async def _still_ours(self) -> bool:
        """After a conflict: maybe our own earlier write got through although its answer was lost."""
        try:
            lease = await self._client.get_or_none(LEASES, self.name, self.ns)
        except HcpError:
            return True  # cannot tell: keep trying until the time is over
        if lease is None or lease["spec"].get("holderIdentity") != self.identity:
            return False
        self._held = lease
        return True


def _micro_now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
