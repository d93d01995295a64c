"""Who gets which host."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.router import admission


def route(name: str, namespace: str = "a", *, at: str = "2030-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    tls = spec.pop("tls", {"termination": "passthrough"})
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": at},
        "spec": {"to": {"name": name}, **({"tls": tls} if tls else {}), **spec},
    }


def decide(*routes: dict[str, Any], domain: str = "apps.test") -> dict[str, admission.Decision]:
    return {one.key: one for one in admission.decide(routes, domain)}


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


def test_a_wildcard_does_not_take_the_exact_host_of_another() -> None:
    found = decide(
        route("wild", "a", host="https.apps.c.test", wildcardPolicy="Subdomain"),
        route("exact", "b", host="console.apps.c.test", at="2030-01-02T00:00:00Z"),
    )
    assert found["a/wild"].name == "*.apps.c.test"
    assert found["b/exact"].admitted


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
    bad = admission.Decision("a/r", "h.test", False, "HostAlreadyClaimed", "m")
    turned = admission.status_of({**one, "status": {"ingress": first}}, bad, "T2", "")
    assert turned[0]["conditions"][0]["lastTransitionTime"] == "T2"


def test_entries_of_other_routers_are_kept() -> None:
    other = {"routerName": "other", "host": "h"}
    one = {**route("r", host="h.test"), "status": {"ingress": [other]}}
    assert admission.status_of(one, decide(one)["a/r"], "T", "")[0] == other
