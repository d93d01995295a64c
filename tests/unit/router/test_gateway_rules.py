"""What rules of Gateways' routes become: which of a host's comes first, what is changed, where a redirect leads."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.router import admission, maps, scripted
from hcp.router.gateway import changes, listeners, matches, redirects


def made(number: int, *, name: str = "r", created: str = "2030", ns: str = "n", **match: Any) -> dict[str, Any]:
    meta = {"name": f"{name}~gateway~x~{number}", "namespace": ns, "uid": f"u{number}", "creationTimestamp": created}
    spec = {"host": "a.test", "wildcardPolicy": "None", "scheme": "http", **matches.place(match)}
    return {"metadata": meta, "spec": spec}


def path(value: str, how: str = "PathPrefix") -> dict[str, Any]:
    return {"type": how, "value": value}


def header(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "value": "1"} for name in names]


def test_rules_of_a_host_stand_in_the_order_of_the_gateway_api() -> None:
    first = made(0, path=path("/a", "Exact"))
    second = made(1, path=path("/a/b"))
    third = made(2, path=path("/"), method="GET")
    fourth = made(3, path=path("/"), headers=header("x", "y"))
    fifth = made(4, path=path("/"), headers=header("x"), queryParams=header("q"))
    sixth = made(5, path=path("/"), headers=header("z"))
    older = made(6, path=path("/"), created="2029", name="s")
    newer = made(7, path=path("/"), created="2030", name="a")
    wanted = [first, second, third, fourth, fifth, sixth, older, newer]
    matches.choose(reversed(wanted))
    assert [one["spec"]["choice"]["number"] for one in wanted] == list(range(8))
    assert len({one["spec"]["choice"]["list"] for one in wanted}) == 1


def test_who_asks_for_paths_only_is_looked_up_as_ever() -> None:
    one, other = made(0, path=path("/")), made(1, path=path("/b"))
    matches.choose([one, other])
    assert "choice" not in one["spec"]
    assert "choice" not in other["spec"]


def test_rules_of_another_namespace_are_another_list() -> None:
    """Who may not have the host makes it no slower for who has."""
    mine, theirs = made(0, path=path("/")), made(1, ns="m", headers=header("x"))
    matches.choose([mine, theirs])
    assert "choice" not in mine["spec"]
    assert theirs["spec"]["choice"]["of"] == 1


def test_a_choice_is_rows_that_hold_no_word_of_the_user() -> None:
    one = made(0, path=path("/a"), method="GET", headers=[{"name": "X-Odd", "value": "a b|c&d=e\t#\\n"}])
    matches.choose([one])
    decision = admission.Decision(admission.key_of(one), "a.test", True)
    rows = maps.rows_of(decision, one, ["10.0.0.1@80"])
    choice = one["spec"]["choice"]
    assert rows[maps.HTTP, "a.test/"] == f"?{choice['list']}?1"
    word = rows[maps.CHOICES, f"{choice['list']}#0"]
    assert word.startswith("p|/a|GET|x-odd=a%20b%7Cc%26d%3De%09%23%5Cn||1@")
    assert all(maps.problem(key, value) is None for (_, key), value in rows.items())


def test_what_a_user_wrote_into_a_route_chooses_nothing() -> None:
    one = made(0, path=path("/a"), headers=header("x"))
    spec = {**one["spec"], "redirect": "goto|302|http|evil|*|*|*", "answers": 500, "changes": "qs:x=y", "tls": None}
    written = {"metadata": {"name": "r", "namespace": "n"}, "spec": {**spec, "choice": {"list": "x"}}}
    rows = maps.rows_of(admission.Decision("n/r", "a.test", True), written, ["10.0.0.1@80"])
    assert {table for table, _ in rows} == {maps.HTTP, maps.ADDRESS}
    assert not maps.rows_of(admission.Decision("n/r", "a.test", True), written, [])


def test_routes_that_want_other_headers_share_a_place() -> None:
    one, other, same = (made(number, path=path("/a"), headers=header(name)) for number, name in enumerate("xyx"))
    decided = admission.decide([one, other, same], admission.Policy("apps.test", ends_tls=True))
    assert [each.admitted for each in sorted(decided, key=lambda each: each.key)] == [True, True, False]


def test_a_wildcard_of_a_gateway_has_a_second_row() -> None:
    one = made(0, path=path("/"))
    decision = admission.Decision("n/r~gateway~x~0", "any.a.test", True, wildcard=True)
    assert {key for _, key in maps.rows_of(decision, one, []) if "." in key} == set()
    keys = {key for table, key in maps.rows_of(decision, one, ["10.0.0.1@80"], deep=True) if table == maps.HTTP}
    assert keys == {"*.a.test/", "**.a.test/"}


@pytest.mark.parametrize(
    ("code", "wanted"), [(500, "answer-500"), (503, "answer-503")], ids=["leads nowhere", "no pod is ready"]
)
def test_a_route_without_pods_keeps_its_place(code: int, wanted: str) -> None:
    one = made(0, path=path("/a"))
    one["spec"]["answers"] = code
    decision = admission.Decision("n/r~gateway~x~0", "a.test", True)
    assert maps.rows_of(decision, one, []) == {(maps.HTTP, "a.test/a/"): wanted}


def test_changes_are_words_of_letters_and_signs() -> None:
    modify = {"set": [{"name": "X-A", "value": "a&b=c\t"}], "add": [{"name": "b", "value": ""}], "remove": ["C"]}
    rule = {
        "filters": [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": modify},
            {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["Server"]}},
            {"type": "URLRewrite", "urlRewrite": {"hostname": "In.Test", "path": {"type": "ReplaceFullPath"}}},
        ]
    }
    wanted = "qs:x-a=a%26b%3Dc%09&qa:b=&qd:c=&pd:server=&qs:host=in.test&qp:=/"
    assert changes.of_rule(rule) == wanted
    assert changes.of_rule({}) == ""


@pytest.mark.parametrize("name", sorted(changes.FRAMING))
def test_where_a_message_ends_is_nobodys_to_change(name: str) -> None:
    rule = {"filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": [name.upper()]}}]}
    with pytest.raises(redirects.Unsupported):
        changes.of_rule(rule)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"hostname": "x.test"}, "goto|302|http|x.test|*|*|*"),
        ({"scheme": "https", "statusCode": 301}, "goto|301|https|*|*|*|*"),
        ({"scheme": "https", "port": 443}, "goto|302|https|*|*|*|*"),
        ({"port": 8083}, "goto|302|http|*|:8083|*|*"),
        ({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/n/"}}, "goto|302|http|*|*|=/n|2"),
        ({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/n/"}}, "goto|302|http|*|*|=/n/|all"),
    ],
)
def test_where_a_redirect_leads(given: dict[str, Any], wanted: str) -> None:
    assert redirects.row(given, "http", "/a/b") == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"scheme": "ftp"},
        {"hostname": "a b"},
        {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/a|b"}},
        {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/\n"}},
        {"path": {"type": "Other"}},
    ],
)
def test_a_redirect_that_cannot_be_said_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(redirects.Unsupported):
        redirects.row(given, "http", "/a")


def waiting(hostname: str, protocol: str = "HTTP") -> listeners.Listener:
    accepted = (True, "Accepted", "")
    return listeners.Listener("n/g", "l", protocol, 80, hostname, accepted, listeners.RESOLVED, {})


def test_what_listeners_wait_for() -> None:
    found = [waiting("a.test"), waiting("*.b.test", "TLS"), waiting(""), waiting("", "TLS"), waiting("*.test")]
    domains = ("apps.test",)
    # Nobody waits for all names below the cluster's own domain, nor for any name without being permitted to.
    assert listeners.waited_for(found, domains, any_host=False) == {"a.test/http", "*.b.test/tls"}
    assert {"*/http", "*/tls"} <= listeners.waited_for(found, domains, any_host=True)
    secure = [*found, waiting("", "HTTPS")]
    assert "*/tls" not in listeners.waited_for(secure, domains, any_host=True), "there a certificate is shown"


@pytest.mark.parametrize(
    ("name", "covered"),
    [("*.apps.test", True), ("*.test", True), ("*.x.apps.test", False), ("apps.test", False), ("*.pps.test", False)],
)
def test_wildcards_over_a_shared_domain(name: str, covered: bool) -> None:
    assert listeners.covers(name, ("apps.test",)) == covered


def test_the_script_is_a_program_of_the_tables_it_reads() -> None:
    text = scripted.script("choices.map", "changes.map")
    assert 'Map.new("choices.map", Map._str)' in text
    assert '"^%?(%x+)%?(%d+)$"' in text, "and no sign of the template is left"
