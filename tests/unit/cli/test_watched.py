"""Watching objects through everything an API server does: events, ended and refused watches, absences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, cast

import pytest

from hcp.cli.shared import watched as module
from hcp.cli.shared.watched import Watched
from hcp.kube import Client
from hcp.kube.errors import Forbidden, Gone, NotFound, ServerFailure, Unauthorized
from hcp.kube.resources import NODEPOOLS


def pool(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": {"replicas": version}}


class Server:
    """Answers lists and watches from two scripts; a watch without a script stays silent."""

    def __init__(self, lists: list[Any], watches: list[list[Any]] | None = None) -> None:
        self.lists = lists
        self.watches = watches or []
        self.asked = 0

    async def list_with_version(self, *_: Any) -> tuple[list[dict[str, Any]], str]:
        self.asked += 1
        answer = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(answer, Exception):
            raise answer
        return answer, "7"

    async def watch(self, *_: Any) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        if not self.watches:
            await asyncio.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


async def follow(server: Server, seconds: float = 0.5) -> tuple[Watched, list[tuple[dict[str, int], str]]]:
    """What was seen at each telling: replicas by name, and the trouble."""
    seen: list[tuple[dict[str, int], str]] = []
    watched = Watched(NODEPOOLS, "a")

    def tell() -> None:
        replicas = {name: obj["spec"]["replicas"] for name, obj in watched.objects.items()}
        seen.append((replicas, str(watched.trouble or "")))

    with suppress(TimeoutError):
        await asyncio.wait_for(watched.follow(cast(Client, server), tell), seconds)
    return watched, seen


async def test_events_are_taken_in_one_by_one() -> None:
    events = [
        ("ADDED", pool("b", 2)),
        ("MODIFIED", pool("a", 3)),
        ("BOOKMARK", pool("x", 4)),
        ("DELETED", pool("b", 5)),
    ]
    _, seen = await follow(Server([[pool("a", 1)]], [events]), 0.03)
    assert seen[:4] == [({"a": 1}, ""), ({"a": 1, "b": 2}, ""), ({"a": 3, "b": 2}, ""), ({"a": 3}, "")]


async def test_a_dropped_watch_is_begun_anew_from_a_fresh_list() -> None:
    server = Server([[pool("a", 1)], [pool("a", 4)]], [[Gone("too old")], [], [("MODIFIED", pool("a", 5))]])
    watched, seen = await follow(server, 1.5)
    assert server.asked >= 3
    assert ({"a": 5}, "") in seen
    assert watched.trouble is None


async def test_a_server_in_trouble_is_shown_and_asked_again() -> None:
    _, seen = await follow(Server([[pool("a", 1)], ServerFailure("boom"), [pool("a", 2)]], [[]]), 1)
    assert seen[:3] == [({"a": 1}, ""), ({"a": 1}, "boom"), ({"a": 2}, "")]


async def test_a_refusal_at_the_start_is_raised() -> None:
    with pytest.raises(Forbidden):
        await follow(Server([Forbidden("no")]))


async def test_a_refusal_of_a_server_that_has_just_started_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, seen = await follow(Server([[pool("a", 1)], Unauthorized("who?"), [pool("a", 2)]], [[]]), 1)
    assert ({"a": 1}, "who?") in seen
    assert seen[-1] == ({"a": 2}, "")
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with pytest.raises(Unauthorized):
        await follow(Server([[pool("a", 1)], Unauthorized("who?")], [[]]), 5)


async def test_a_kind_that_is_not_served_has_no_objects() -> None:
    watched, seen = await follow(Server([NotFound("no such kind")]), 0.3)
    assert seen[0] == ({}, "")
    assert watched.known
