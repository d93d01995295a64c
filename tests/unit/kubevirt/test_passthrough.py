"""What a Route in another infra cluster says about the way to the default ingress there."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.kubevirt import granted
from hcp.kubevirt.passthrough import AGAIN, SOON, STEADY, Found, _admission

BASE = "apps.infra.test"


def said(*conditions: dict[str, str]) -> Found:
    ingress = [{"routerName": "default", "conditions": [{"type": "Admitted", **one}]} for one in conditions]
    route: dict[str, Any] = {"metadata": {"name": "way"}, "status": {"ingress": ingress}}
    return _admission(route, "vms", BASE)


def test_one_router_that_admits_it_is_enough() -> None:
    found = said({"status": "False", "reason": "RouteNotAdmitted"}, {"status": "True"})
    assert found == Found(domain=BASE, again=STEADY)


def test_nobody_has_looked_at_it_yet() -> None:
    assert (said().problem, said().again) == (
        "Route way in namespace vms of the infra cluster is not admitted yet",
        SOON,
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [("RouteNotAdmitted", "WildcardsAllowed"), ("HostAlreadyClaimed", "dns.baseDomainPrefix")],
)
def test_a_refusal_says_what_to_do_and_repeats_no_words_of_others(reason: str, words: str) -> None:
    found = said({"status": "False", "reason": reason, "message": "call 0800 now"})
    assert (found.reason, found.again) == ("RouteNotAdmitted", AGAIN)
    assert words in found.todo and "0800" not in f"{found.problem}{found.todo}"


def test_of_many_missing_rights_some_are_named() -> None:
    assert granted.short(["get a", "get b"]) == "get a, get b"
    assert granted.short(["get a", "get b", "get c"], 2) == "get a, get b and 1 more"
