"""Deciding what changed gives the same as deciding all, and rows are kept by whoever has them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp.router import admission, book, maps, tables
from hcp.router.claims import Claim

POLICY = admission.Policy("apps.test", ends_tls=True)
HOSTS = ("a.x.test", "b.x.test", "x.test", "a.y.test", "localhost", "no host")


def route(number: int, namespace: str, host: str, *, wild: bool, path: str, tls: str, stamp: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"host": host, "path": path, "wildcardPolicy": "Subdomain" if wild else "None"}
    if tls:
        spec["tls"] = {"termination": tls}
    meta = {"name": f"r{number}", "namespace": namespace, "uid": f"{namespace}-{number}-{stamp % 3}"}
    return {"metadata": {**meta, "creationTimestamp": f"2026-01-01T00:00:0{stamp}Z", "generation": 1}, "spec": spec}


ROUTES = st.builds(
    route,
    st.integers(0, 4),
    st.sampled_from(["n", "m"]),
    st.sampled_from(HOSTS),
    wild=st.booleans(),
    path=st.sampled_from(["", "/a"]),
    tls=st.sampled_from(["", "edge", "passthrough"]),
    stamp=st.integers(0, 9),
)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "drop", "refuse", "policy"]), ROUTES), max_size=25)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_what_is_decided_step_by_step_is_what_would_be_decided_at_once(steps: list[tuple[str, Any]]) -> None:
    made = book.Book()
    words: dict[str, str] = {}
    policy = POLICY
    made.follow(policy)
    for what, one in steps:
        key = admission.key_of(one)
        if what == "put":
            made.put(key, one)
        elif what == "drop":
            made.put(key, None)
            words.pop(key, None)
        elif what == "policy":
            policy = admission.Policy("apps.test", foreign_wildcards=not policy.foreign_wildcards, ends_tls=True)
            made.follow(policy)
        elif key in made.routes:
            words[key] = "no"
            made.again(key)
        granted = dict(made.granted)
        decided = made.decide(words)
        wanted = {d.key: d for d in admission.decide(made.routes.values(), policy, granted, words)}
        assert made.decisions == wanted
        assert made.admitted == sum(d.admitted for d in wanted.values())
        made.remember(decided)
        assert set(made.granted) == {made.routes[k]["metadata"]["uid"] for k, d in wanted.items() if d.admitted}


def plain(number: int, namespace: str, host: str, *, wild: bool = False) -> dict[str, Any]:
    return route(number, namespace, host, wild=wild, path="", tls="", stamp=number)


def test_one_route_among_many_is_decided_alone() -> None:
    made = book.Book()
    made.follow(POLICY)
    for number in range(9):
        made.put(f"n/r{number}", plain(number, "n", f"h{number}.x.test"))
    assert len(made.decide({})) == 9
    made.put("n/r3", plain(3, "n", "other.x.test"))
    assert made.decide({}) == {"n/r3"}
    assert made.decide({}) == set()
    # The wildcard above them concerns all.
    made.put("m/r0", plain(0, "m", "w.x.test", wild=True))
    assert len(made.decide({})) == 10


def test_bad_routes_are_each_alone() -> None:
    made = book.Book()
    made.follow(POLICY)
    for number in range(5):
        made.put(f"n/r{number}", plain(number, "n", "no host"))
    made.decide({})
    made.put("n/r1", plain(1, "n", "no host either"))
    assert made.decide({}) == {"n/r1"}


def test_a_claim_goes_with_its_route_and_not_with_its_name() -> None:
    made = book.Book()
    made.put("n/r0", plain(0, "n", "a.x.test"))
    made.remember(made.decide({}))
    assert made.granted["n-0-0"].name == "a.x.test"
    made.put("n/r0", {**plain(0, "n", "a.x.test"), "metadata": {**plain(0, "n", "")["metadata"], "uid": "new"}})
    assert "n-0-0" not in made.granted
    made.granted["other"] = Claim("a.x.test", "2026")
    made.put("n/r0", None)
    assert made.decide({}) == set()
    assert made.decisions == {}


A, B = (maps.ADDRESS, "x#0"), (maps.TLS_END, "a.test")


def test_a_row_of_several_routes_stays_until_the_last_is_gone() -> None:
    made = tables.Tables()
    made.put("n/1", {A: "1@1", B: "1"})
    made.put("n/2", {B: "1"})
    assert made.touched == {A, B}
    assert sorted(made.owners(B)) == ["n/1", "n/2"]
    made.touched.clear()
    made.put("n/1", {})
    assert made.touched == {A}
    assert made.rows[maps.TLS_END] == {"a.test": "1"}
    made.put("n/2", {})
    assert made.touched == {A, B}
    assert not any(made.rows.values())
    assert made.owners(B) == []


@pytest.mark.parametrize("order", [("n/1", "n/2"), ("n/2", "n/1")])
def test_a_place_that_changes_hands_is_changed_and_never_gone(order: tuple[str, str]) -> None:
    made = tables.Tables()
    made.put("n/1", {A: "1@1"})
    made.touched.clear()
    for owner in order:
        made.put(owner, {} if owner == "n/1" else {A: "2@2"})
    assert made.rows[maps.ADDRESS] == {"x#0": "2@2"}
    assert made.touched == {A}


def test_the_same_again_touches_nothing() -> None:
    made = tables.Tables()
    made.put("n/1", {A: "1@1"})
    made.touched.clear()
    made.put("n/1", {A: "1@1"})
    assert not made.touched
