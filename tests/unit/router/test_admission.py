"""Who gets which host."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.router import admission, claims


def route(name: str, namespace: str = "a", *, at: str = "2030-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    tls = spec.pop("tls", {"termination": "passthrough"})
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": at,
            "uid": f"{namespace}-{name}",
            "generation": spec.pop("generation", 1),
        },
        "spec": {"to": {"name": name}, **({"tls": tls} if tls else {}), **spec},
    }


def decide(*routes: dict[str, Any], domain: str = "apps.test", allow: bool = False) -> dict[str, admission.Decision]:
    policy = admission.Policy(domain, foreign_wildcards=allow)
    return {one.key: one for one in admission.decide(routes, policy)}


def served(one: dict[str, Any], at: str = "2030-01-01T00:00:00Z") -> dict[str, Any]:
    """The Route as it is after the router admitted it at a time."""
    decision = decide(one)[admission.key_of(one)]
    assert decision.admitted
    return {**one, "status": {"ingress": admission.status_of(one, decision, at, "")}}


def test_an_empty_host_is_made_from_name_and_namespace() -> None:
    assert decide(route("web", "shop"))["shop/web"].host == "web-shop.apps.test"


def test_a_subdomain_is_put_before_the_domain() -> None:
    assert decide(route("web", subdomain="www.shop"))["a/web"].host == "www.shop.apps.test"


@given(st.from_regex(r"[a-z][a-z0-9.-]{0,80}[a-z0-9]", fullmatch=True), st.from_regex(r"[a-z]{1,63}", fullmatch=True))
def test_a_made_host_always_has_a_usable_first_label(name: str, namespace: str) -> None:
    host = admission.default_host(name, namespace, "apps.test")
    label = host.removesuffix(".apps.test")
    assert "." not in label
    assert 0 < len(label) <= 63


def test_long_names_stay_apart() -> None:
    one = admission.default_host("x" * 70 + "1", "ns", "d")
    two = admission.default_host("x" * 70 + "2", "ns", "d")
    assert one != two


def test_the_oldest_claim_wins_whatever_the_order() -> None:
    old = route("old", "a", at="2030-01-01T00:00:00Z", host="h.test")
    new = route("new", "b", at="2030-01-02T00:00:00Z", host="H.test")
    for order in ((old, new), (new, old)):
        found = decide(*order)
        assert found["a/old"].admitted
        assert not found["b/new"].admitted
        assert found["b/new"].reason == "HostAlreadyClaimed"
    assert decide(new)["b/new"].admitted


def test_one_namespace_may_split_a_host_by_path() -> None:
    found = decide(
        route("root", host="h.test", tls=None),
        route("api", host="h.test", path="/api", tls=None, at="2030-01-02T00:00:00Z"),
        route("api2", host="h.test", path="/api", tls=None, at="2030-01-03T00:00:00Z"),
    )
    assert [found[f"a/{name}"].admitted for name in ("root", "api", "api2")] == [True, True, False]


WILD = route("wild", "a", host="https.apps.c.test", wildcardPolicy="Subdomain")
UNDER = route("exact", "b", host="console.apps.c.test", at="2030-01-02T00:00:00Z")


def test_a_host_under_a_wildcard_of_another_namespace_is_refused_unless_allowed() -> None:
    found = decide(WILD, UNDER)
    assert found["a/wild"].name == "*.apps.c.test"
    assert (found["b/exact"].admitted, found["b/exact"].reason) == (False, "HostUnderForeignWildcard")
    assert decide(WILD, UNDER, allow=True)["b/exact"].admitted
    own = {**UNDER, "metadata": {**UNDER["metadata"], "namespace": "a"}}
    assert decide(WILD, own)["a/exact"].admitted


def test_a_wildcard_does_not_take_a_host_that_was_claimed_before_it() -> None:
    early = served(UNDER, at="2030-01-03T00:00:00Z")
    late = served(WILD, at="2030-01-03T00:00:00Z")
    for order in ((early, late), (late, early)):
        found = decide(*order)
        assert found["b/exact"].admitted
        assert found["a/wild"].admitted


def test_nobody_takes_every_name_of_the_apps_domain() -> None:
    found = decide(route("r", host="x.apps.test", wildcardPolicy="Subdomain"))["a/r"]
    assert (found.admitted, found.reason) == (False, "SharedDomain")


def test_an_older_route_that_is_edited_does_not_win_a_host() -> None:
    owner = served(route("api", "victim", at="2030-02-01T00:00:00Z", host="h.test"), at="2030-02-01T00:00:01Z")
    older = served(route("old", "attacker", host="mine.test"))
    edited = {**older, "spec": {**older["spec"], "host": "h.test"}}
    for order in ((owner, edited), (edited, owner)):
        found = decide(*order)
        assert found["victim/api"].admitted
        assert found["attacker/old"].reason == "HostAlreadyClaimed"


def test_an_edited_route_stands_behind_one_that_always_asked_for_the_host() -> None:
    fresh = route("api", "victim", at="2030-02-01T00:00:00Z", host="h.test")
    edited = route("old", "attacker", host="h.test", generation=2)
    assert decide(edited, fresh)["victim/api"].admitted


def test_what_was_given_counts_before_it_is_written() -> None:
    fresh = route("api", "victim", at="2030-02-01T00:00:00Z", host="h.test", generation=5)
    older = route("old", "attacker", host="h.test")
    granted = {"victim-api": claims.Claim("h.test", "2030-02-01T00:00:01Z")}
    found = admission.decide([older, fresh], admission.Policy("apps.test"), granted)
    assert {one.key for one in found if one.admitted} == {"victim/api"}


def test_a_route_made_anew_has_no_claim_of_its_forerunner() -> None:
    waiting = route("old", "attacker", host="h.test")
    again = route("api", "victim", at="2030-02-01T00:00:00Z", host="h.test")
    granted = {"uid-of-the-deleted-one": claims.Claim("h.test", "2030-01-01T00:00:01Z")}
    found = admission.decide([again, waiting], admission.Policy("apps.test"), granted)
    assert {one.key for one in found if one.admitted} == {"attacker/old"}


def test_a_route_that_haproxy_does_not_take_says_so_and_frees_its_host() -> None:
    bad, good = route("bad", "a", host="h.test"), route("good", "b", host="h.test", at="2030-01-02T00:00:00Z")
    found = admission.decide([bad, good], admission.Policy("apps.test"), refused={"a/bad": "no"})
    by_key = {one.key: one for one in found}
    assert by_key["a/bad"].reason == "NotServable"
    assert by_key["b/good"].admitted


@pytest.mark.parametrize("field", ["host", "subdomain", "path"])
@given(value=st.one_of(st.text(min_size=1), st.integers(1), st.lists(st.text(), min_size=1), st.just("/\n\nshow info")))
def test_whatever_is_written_is_served_safely_or_refused(field: str, value: Any) -> None:
    one = route("r", tls=None, **{field: value})
    decision = decide(one)["a/r"]
    if decision.admitted:
        assert re.fullmatch(r"[!-~]+", decision.host)
        assert re.fullmatch(r"[!-~]*", str(one["spec"].get("path") or ""))
    else:
        assert decision.reason in ("InvalidHost", "InvalidPath", "InvalidRoute")
        assert len(decision.message) < 400


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(st.sampled_from(["host", "path", "tls", "termination", "wildcardPolicy", "to"]), x)
        ),
    )
)
def test_a_route_of_another_schema_never_stops_the_others(spec: Any) -> None:
    strange = {**route("r"), "spec": spec}
    assert decide(strange, route("good", "b", host="h.test"))["b/good"].admitted


@pytest.mark.parametrize(
    ("one", "domain", "reason"),
    [
        (route("r"), "", "NoDomain"),
        (route("r", host="a..b"), "d", "InvalidHost"),
        (route("r", host="x" * 64 + ".d"), "d", "InvalidHost"),
        (route("r", host="top", wildcardPolicy="Subdomain"), "d", "InvalidHost"),
        (route("r", host="a.b", tls={"termination": "edge"}), "d", "UnsupportedTermination"),
        (route("r", host="a.b", tls={"termination": "reencrypt"}), "d", "UnsupportedTermination"),
    ],
)
def test_what_cannot_be_served_says_why(one: dict[str, Any], domain: str, reason: str) -> None:
    decision = decide(one, domain=domain)["a/r"]
    assert not decision.admitted
    assert decision.reason == reason
    assert decision.message


def test_status_moves_its_time_only_on_change() -> None:
    one = route("r", host="h.test")
    good = decide(one)["a/r"]
    first = admission.status_of(one, good, "T1", "router-default.apps.test")
    assert first[0]["conditions"] == [{"type": "Admitted", "status": "True", "lastTransitionTime": "T1"}]
    kept = admission.status_of({**one, "status": {"ingress": first}}, good, "T2", "router-default.apps.test")
    assert kept == first
    moved = admission.Decision("a/r", "other.test", True)
    fresh = admission.status_of({**one, "status": {"ingress": first}}, moved, "T2", "")
    assert fresh[0]["conditions"][0]["lastTransitionTime"] == "T2"
    bad = admission.Decision("a/r", "h.test", False, "HostAlreadyClaimed", "m")
    turned = admission.status_of({**one, "status": {"ingress": first}}, bad, "T2", "")
    assert turned[0]["conditions"][0]["lastTransitionTime"] == "T2"


def test_entries_of_other_routers_are_kept() -> None:
    other = {"routerName": "other", "host": "h"}
    one = {**route("r", host="h.test"), "status": {"ingress": [other]}}
    assert admission.status_of(one, decide(one)["a/r"], "T", "")[0] == other
