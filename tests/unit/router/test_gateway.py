"""What Gateways and their routes mean: names in common, who permits what, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hcp import pki
from hcp.router import admission, backends, options
from hcp.router.gateway import grants, listeners, status, translate


@pytest.mark.parametrize(
    ("listener", "route", "wanted"),
    [
        ("", "", ""),
        ("", "a.test", "a.test"),
        ("a.test", "", "a.test"),
        ("a.test", "a.test", "a.test"),
        ("a.test", "b.test", None),
        ("*.test", "a.test", "a.test"),
        ("*.test", "test", None),
        ("a.test", "*.test", "a.test"),
        ("*.test", "*.a.test", "*.a.test"),
        ("*.a.test", "*.test", "*.a.test"),
        ("*.a.test", "b.test", None),
    ],
)
def test_names_in_common(listener: str, route: str, wanted: str | None) -> None:
    assert listeners.shared(listener, route) == wanted


def gateway(*given: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "n"}, "spec": {"listeners": list(given)}}


HTTP = {"name": "http", "protocol": "HTTP", "port": 80}
MADE = pki.issue(pki.new_ca("test"), "a.test", dns=("a.test",), usage="server")
PAIR = (MADE.cert_pem.decode(), MADE.key_pem.decode())


def world(*given: dict[str, Any], known: list[dict[str, Any]] | None = None) -> translate.World:
    found = listeners.of_gateway(gateway(*(given or (HTTP,))), lambda _ns, _name: PAIR, known or [])
    return translate.World({"n/web": found}, lambda _name: {"metadata": {}}, lambda _ns, _name: {}, known or [])


def route(*rules: dict[str, Any], hosts: tuple[str, ...] = ("a.test",), ns: str = "n") -> dict[str, Any]:
    meta = {"name": "r", "namespace": ns, "uid": "u", "creationTimestamp": "2030-01-01T00:00:00Z"}
    parents = [{"name": "web", "namespace": "n"}]
    return {"metadata": meta, "spec": {"parentRefs": parents, "hostnames": list(hosts), "rules": list(rules)}}


def test_a_rule_becomes_routes_that_are_held_to_the_same_words() -> None:
    rewrite = {
        "type": "URLRewrite",
        "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v1"}},
    }
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/a"}}, {"path": {"type": "Exact", "value": "/b"}}],
        "backendRefs": [{"name": "s", "port": 80, "weight": 3}, {"name": "t", "port": 81}],
        "filters": [rewrite],
        "timeouts": {"request": "1m30s"},
    }
    (one,) = translate.attach(route(rule), "HTTPRoute", world())
    assert one.accepted == translate.ACCEPTED
    assert [(made["spec"]["path"], made["spec"]["exactPath"]) for made in one.routes] == [("/a", False), ("/b", True)]
    found = options.read(one.routes[0])
    assert (found.timeout, found.rewrite, found.strip) == (90000, "/v1", 1)
    assert [translate.owner_of(admission.key_of(made)) for made in one.routes] == ["n/r", "n/r"]
    decided = admission.decide(one.routes, admission.Policy("apps.test", ends_tls=True))
    assert all(each.admitted for each in decided)


@pytest.mark.parametrize(
    "rule",
    [
        {"matches": [{"headers": [{"name": "x", "value": "y.*", "type": "RegularExpression"}]}]},
        {"matches": [{"headers": [{"name": "x y", "value": "y"}]}]},
        {"matches": [{"method": "GRAB"}]},
        {"matches": [{"queryParams": [{"name": "x", "value": "y", "type": "RegularExpression"}]}]},
        {"matches": [{"path": {"type": "RegularExpression", "value": "/.*"}}]},
        {"filters": [{"type": "RequestMirror", "requestMirror": {}}]},
        {"filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "Host"}]}}]},
        {"filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["Content-Length"]}}]},
        {"filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "x\r\ny"}]}}]},
        {
            "filters": [
                {
                    "type": "RequestHeaderModifier",
                    "requestHeaderModifier": {"add": [{"name": "x", "value": "y\r\nz: 1"}]},
                }
            ]
        },
        {"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "evil.test/|x"}}]},
        {"filters": [{"type": "RequestRedirect", "requestRedirect": {"statusCode": 418}}]},
        {"filters": [{"type": "URLRewrite", "urlRewrite": {"hostname": "x.test:80"}}]},
        {"timeouts": {"request": "soon"}},
        {"backendRefs": [{"name": "s", "port": 80, "filters": [{"type": "RequestHeaderModifier"}]}]},
    ],
)
def test_what_is_not_served_is_said(rule: dict[str, Any]) -> None:
    (one,) = translate.attach(route(rule), "HTTPRoute", world())
    assert one.accepted[:2] == (False, "UnsupportedValue")
    assert one.accepted[2]
    assert not one.routes


def test_a_word_that_is_a_command_gets_no_further() -> None:
    rewrite = {
        "type": "URLRewrite",
        "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/\n\nshow info"}},
    }
    (one,) = translate.attach(route({"filters": [rewrite], "backendRefs": [{"name": "s"}]}), "HTTPRoute", world())
    (decision,) = admission.decide(one.routes, admission.Policy("apps.test", ends_tls=True))
    assert (decision.admitted, decision.reason) == (False, "InvalidAnnotation")


def test_a_service_of_another_namespace_needs_its_grant() -> None:
    rule = {"backendRefs": [{"name": "s", "namespace": "m", "port": 80}]}
    (one,) = translate.attach(route(rule), "HTTPRoute", world())
    assert one.resolved[:2] == (False, "RefNotPermitted")
    assert one.routes[0]["spec"]["to"] == {}, "and nothing is led there"
    grant = {
        "metadata": {"namespace": "m"},
        "spec": {
            "from": [{"group": grants.GROUP, "kind": "HTTPRoute", "namespace": "n"}],
            "to": [{"group": "", "kind": "Service", "name": "s"}],
        },
    }
    (one,) = translate.attach(route(rule), "HTTPRoute", world(known=[grant]))
    assert one.resolved == listeners.RESOLVED
    assert one.routes[0]["spec"]["to"]["namespace"] == "m"


def test_a_route_that_a_user_wrote_reaches_no_other_namespace() -> None:
    """A Route kind that is somebody else's may let such a field in."""
    asked: list[str] = []

    def service(namespace: str, _name: str) -> None:
        asked.append(namespace)

    spec: dict[str, Any] = {"to": {"name": "s", "namespace": "victim"}}
    written = {"metadata": {"name": "r", "namespace": "n"}, "spec": spec}
    backends.of_route(written, service, lambda _ns, _name: [])
    assert asked == ["n"]
    host = admission.decide([{**written, "spec": {**spec, "anyHost": "Gateway"}}], ANYBODY)[0].host
    assert host == "r-n.apps.test", "nor does it answer for any name"


ANYBODY = admission.Policy("apps.test", any_host=frozenset({"Gateway", "Ingress"}))


def test_plain_and_encrypted_requests_of_a_place_are_claimed_apart() -> None:
    tls = {"mode": "Terminate", "certificateRefs": [{"name": "c"}]}
    both = world(HTTP, {"name": "https", "protocol": "HTTPS", "port": 443, "tls": tls})
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}
    plain, secure = route({"filters": [redirect]}), route({"backendRefs": [{"name": "s", "port": 80}]})
    plain["spec"]["parentRefs"][0]["sectionName"], plain["metadata"]["name"] = "http", "plain"
    secure["spec"]["parentRefs"][0]["sectionName"], secure["metadata"]["uid"] = "https", "v"
    made = [
        found for one in (plain, secure) for each in translate.attach(one, "HTTPRoute", both) for found in each.routes
    ]
    decided = admission.decide(made, admission.Policy("apps.test", ends_tls=True))
    assert [one.admitted for one in decided] == [True, True]
    assert (
        admission.decide([made[0], {**made[0], "metadata": {**made[0]["metadata"], "name": "x~1"}}], ANYBODY)[1].reason
        == "HostAlreadyClaimed"
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"protocol": "HTTP", "port": 8080}, "PortUnavailable"),
        ({"protocol": "UDP", "port": 53}, "UnsupportedProtocol"),
        ({"protocol": "TLS", "port": 443, "tls": {"mode": "Terminate"}}, "UnsupportedValue"),
    ],
)
def test_listeners_that_are_not_served(given: dict[str, Any], reason: str) -> None:
    (one,) = listeners.of_gateway(gateway({"name": "l", **given}), lambda _ns, _name: None, [])
    assert one.accepted[1] == reason
    assert not one.works


def test_namespaces_are_selected_by_labels() -> None:
    namespace = {"metadata": {"labels": {"team": "blue"}}}
    assert grants.selects({"matchLabels": {"team": "blue"}}, namespace)
    assert not grants.selects({"matchLabels": {"team": "red"}}, namespace)
    assert grants.selects({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]}, namespace)
    assert not grants.selects({"matchExpressions": [{"key": "team", "operator": "Made-up"}]}, namespace)
    assert not grants.selects({}, None)


def test_a_host_is_not_lost_for_a_service_that_went_or_a_certificate_that_was_renewed() -> None:
    tls = {"mode": "Terminate", "certificateRefs": [{"name": "c"}]}
    secure = {"name": "https", "protocol": "HTTPS", "port": 443, "tls": tls}
    (before,) = translate.attach(route({"backendRefs": [{"name": "s", "port": 80}]}), "HTTPRoute", world(secure))
    renewed = pki.issue(pki.new_ca("test"), "a.test", dns=("a.test",), usage="server")
    pair = (renewed.cert_pem.decode(), renewed.key_pem.decode())
    found = listeners.of_gateway(gateway(secure), lambda _ns, _name: pair, [])
    other = translate.World({"n/web": found}, lambda _name: {"metadata": {}}, lambda _ns, _name: None, [])
    (after,) = translate.attach(route({"backendRefs": [{"name": "s", "port": 80}]}), "HTTPRoute", other)
    assert before.routes[0]["spec"] != after.routes[0]["spec"]
    assert before.routes[0]["metadata"] == after.routes[0]["metadata"]
    (edited,) = translate.attach(route({"backendRefs": [{"name": "t", "port": 80}]}), "HTTPRoute", other)
    assert edited.routes[0]["metadata"]["uid"] != after.routes[0]["metadata"]["uid"]


def test_a_route_is_not_in_its_own_way() -> None:
    """Two listeners, and two Gateways, that have its host in common."""
    found = world(HTTP, {**HTTP, "name": "wide", "hostname": "*.test"})
    twice = route({"backendRefs": [{"name": "s", "port": 80}]})
    twice["spec"]["parentRefs"] *= 2
    one, other = translate.attach(twice, "HTTPRoute", found)
    assert (len(one.routes), len(other.routes)) == (1, 0)
    assert {each.name for each in other.listeners} == {"http", "wide"}


def test_a_host_that_somebody_else_has_is_told_beside_what_is_served() -> None:
    (one,) = translate.attach(route({"backendRefs": [{"name": "s", "port": 80}]}), "HTTPRoute", world())
    live = {"metadata": {"generation": 2}}

    def told(refused: status.Refusal | None) -> dict[str, tuple[str, str]]:
        (parent,) = status.of_route(live, [one], refused, "2030-01-01T00:00:00Z")
        return {each["type"]: (each["status"], each["reason"]) for each in parent["conditions"]}

    served = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
    assert told(None) == served
    some = status.Refusal("HostAlreadyClaimed", "somebody has it", whole=False)
    assert told(some) == {**served, "PartiallyInvalid": ("True", "HostAlreadyClaimed")}
    assert told(status.Refusal("NoHost", "", whole=True))["Accepted"] == ("False", "NoHost")
