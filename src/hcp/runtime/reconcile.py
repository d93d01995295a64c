"""The one shape of a reconcile.

fetch → deletion → finalizer → pause → scope → phases → status → one patch. What differs between kinds is given by a
`Kind`; nothing else decides about order, retries or writing.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from hcp.api import pause
from hcp.api.pause import Pause
from hcp.kube.errors import NotFound
from hcp.runtime.controller import Result
from hcp.runtime.informer import Informer
from hcp.runtime.phases import Facts, Phases, Report

S = TypeVar("S")
F = TypeVar("F", bound=Facts)
Object = dict[str, Any]


class Kind(ABC, Generic[S, F]):
    """What one kind brings to the shape: a method for each step, in the order in which they are called."""

    # Seconds after which even a steady object is gone through again; None where nothing changes by time alone.
    steady: float | None = None

    @property
    @abstractmethod
    def informer(self) -> Informer:
        """Where the objects come from, and what is told of our own writes."""

    def gone(self, key: str) -> None:
        """The object is no more: forget what was remembered of it."""

    @abstractmethod
    async def delete(self, obj: Object, now: dt.datetime) -> Result | None:
        """One step towards nothing left; the finalizer goes last."""

    @abstractmethod
    async def adopt(self, obj: Object) -> Object | None:
        """The object with our finalizer and what has to be in it before anything is made; None to leave it alone."""

    @abstractmethod
    async def scope(self, obj: Object, rest: Pause, now: dt.datetime) -> S:
        """What the phases begin with."""

    @abstractmethod
    def phases(self, scope: S) -> Phases[S, F]:
        """What is done; while the object is paused that is something else."""

    @abstractmethod
    def compute(self, obj: Object, scope: S, report: Report, now: str) -> Object:
        """The whole status, as a pure function of what was observed."""

    def again(self, scope: S) -> float | None:
        """Seconds until time alone asks for something else; None where it does not."""
        return None

    async def written(self, scope: S, before: Object, after: Object) -> None:
        """The status is written, or was right already: tell those who follow from it."""


class Reconciler(Generic[S, F]):
    """One pass over one object of a kind."""

    def __init__(self, kind: Kind[S, F]) -> None:
        self._kind = kind

    async def __call__(self, key: str) -> Result | None:
        kind = self._kind
        obj = kind.informer.get_key(key)
        if obj is None:
            kind.gone(key)
            return None
        now = dt.datetime.now(dt.UTC)
        if obj["metadata"].get("deletionTimestamp"):
            return await kind.delete(obj, now)
        obj = await kind.adopt(obj)
        if obj is None:
            return None
        rest = pause.parse(obj["spec"].get("pausedUntil"), now)
        scope = await kind.scope(obj, rest, now)
        scope, report = await kind.phases(scope).run(scope, key=key)
        before = obj.get("status") or {}
        after = kind.compute(obj, scope, report, now.strftime("%Y-%m-%dT%H:%M:%SZ"))
        if await write_status(kind.informer, obj, after):
            await kind.written(scope, before, after)
        report.raise_if_failed()
        report.look_again(rest.seconds(now))
        report.look_again(kind.again(scope))
        if not rest.paused:
            report.look_again(kind.steady)
        return None if report.again is None else Result(report.again)


async def write_status(informer: Informer, obj: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """The one patch of a pass, only if the status is another one; whether the object still exists.

    It names the version it replaces: the list of conditions is one value, and other controllers own some of them.
    """
    body = status_patch(obj.get("status"), after)
    if body is None:
        return True
    meta = obj["metadata"]
    body["metadata"] = {"resourceVersion": meta["resourceVersion"]}
    try:
        made = await informer.client.patch(
            informer.resource, meta["name"], meta.get("namespace"), body, subresource="status"
        )
    except NotFound:
        return False
    informer.observe(made)
    return True


def status_patch(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Object | None:
    """The merge patch from one status to the other; None when they are equal."""
    changed = _merge_patch(before or {}, after)
    return {"status": changed} if changed else None


def _merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """Also what left a block has to be named, at any depth: a merge patch only adds what it does not name."""
    changed: Object = {key: None for key in before if key not in after}
    for key, value in after.items():
        have = before.get(key)
        if have != value:
            both = isinstance(have, Mapping) and isinstance(value, Mapping)
            changed[key] = _merge_patch(have, value) if both else value  # type: ignore[arg-type]
    return changed
