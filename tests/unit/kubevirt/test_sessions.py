"""Finding the hosted clusters whose machines run somewhere."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hcp.kubevirt.session import Session
from hcp.kubevirt.sessions import Sessions


def session(hosted: str, infra: str) -> Session:
    return cast(Session, SimpleNamespace(hosted_namespace=hosted, infra=SimpleNamespace(namespace=infra)))


def found(sessions: Sessions, namespace: str) -> list[Any]:
    return [one.hosted_namespace for one in sessions.with_machines_in(namespace)]


def test_sessions_are_found_by_where_their_machines_run_until_they_end() -> None:
    sessions = Sessions()
    for hosted, infra in (("a", "a"), ("b", "shared"), ("c", "shared")):
        sessions.begin(session(hosted, infra))
    assert (found(sessions, "a"), found(sessions, "shared"), found(sessions, "z")) == (["a"], ["b", "c"], [])
    sessions.begin(session("c", "elsewhere"))
    assert (found(sessions, "shared"), found(sessions, "elsewhere")) == (["b"], ["c"])
    sessions.end("b")
    sessions.end("b")
    assert found(sessions, "shared") == []
