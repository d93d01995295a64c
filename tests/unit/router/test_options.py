"""What annotations of a Route ask for, and which words are refused."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcp.router import admission, maps, options


def route(tls: str = "edge", path: str = "", **annotations: str) -> dict[str, Any]:
    named = {f"{options.PREFIX}{name.replace('__', '.')}": value for name, value in annotations.items()}
    return {
        "metadata": {"name": "r", "namespace": "n", "uid": "u", "annotations": named},
        "spec": {"host": "r.test", "path": path, "to": {"name": "s"}, "tls": {"termination": tls}},
    }


def annotated(name: str, value: str, tls: str = "edge", path: str = "") -> dict[str, Any]:
    made = route(tls, path)
    made["metadata"]["annotations"] = {f"{options.PREFIX}{name}": value}
    return made


def test_nothing_asked_is_nothing_done() -> None:
    assert options.read(route()) == options.Options()
    assert not options.Options().any


@pytest.mark.parametrize(
    ("text", "wanted"), [("30s", 30000), ("5", 5), ("250us", 1), ("1500us", 2), ("2m", 120000), ("1d", 86400000)]
)
def test_timeouts(text: str, wanted: int) -> None:
    assert options.read(annotated("timeout", text)).timeout == wanted
    assert options.read(annotated("timeout-tunnel", text)).tunnel == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("timeout", "soon"),
        ("timeout", "0s"),
        ("timeout", "-1s"),
        ("timeout", "5s if TRUE"),
        ("timeout", "٣s"),
        ("timeout", "999999999999d"),
        ("balance", "fair"),
        ("balance", "roundrobin\n\nshow info"),
        ("rate-limit-connections", "yes"),
        ("rate-limit-connections.rate-http", "many"),
        ("rate-limit-connections.concurrent-tcp", "0"),
        ("rate-limit-connections.rate-tcp", "99999999999"),
        ("ip_allowlist", ""),
        ("ip_allowlist", "10.0.0.0/33"),
        ("ip_whitelist", "everybody"),
        ("ip_whitelist", " ".join(f"10.0.{n // 250}.{n % 250}" for n in range(257))),
        ("hsts_header", "max-age=1;evil: 1"),
        ("hsts_header", "max-age=1\r\nX: y"),
        ("set-forwarded-headers", "maybe"),
        ("rewrite-target", "no-slash"),
        ("rewrite-target", "/a b"),
        ("rewrite-target", "/%[env(HOME)]"),
        ("rewrite-target", "/a|b"),
        ("disable_cookies", "perhaps"),
    ],
)
def test_what_cannot_be_read_refuses_the_route_in_words(name: str, text: str) -> None:
    made = annotated(name, text)
    found = admission.decide([made], admission.Policy("apps.test", ends_tls=True))[0]
    assert (found.admitted, found.reason) == (False, "InvalidAnnotation")
    assert f"{options.PREFIX}{name}" in found.message
    assert "expected" in found.message or "permitted" in found.message
    assert found.message.isprintable()


def test_rates_count_only_when_they_are_turned_on() -> None:
    rates = {"rate-limit-connections__rate-http": "5", "rate-limit-connections__concurrent-tcp": "2"}
    assert not options.read(route(**rates)).any
    on = options.read(route(**rates, **{"rate-limit-connections": "true"}))
    assert (on.http_rate, on.concurrent, on.tcp_rate) == (5, 2, 0)


def test_the_newer_name_of_the_list_of_addresses_counts() -> None:
    found = options.read(route(ip_whitelist="0.0.0.0/0", ip_allowlist="192.0.2.7 2001:db8::/32"))
    assert found.networks == (ipaddress.ip_network("192.0.2.7/32"), ipaddress.ip_network("2001:db8::/32"))


def test_what_cannot_be_done_for_tls_that_is_passed_on_is_said() -> None:
    asked = route("passthrough", timeout="5s", ip_allowlist="192.0.2.0/24", balance="leastconn")
    found = options.read(asked)
    assert found.timeout == 0
    assert found.balance == ""
    assert found.networks
    decision = admission.decide([asked], admission.Policy("apps.test"))[0]
    assert (decision.admitted, decision.reason) == (True, "AnnotationsIgnored")
    assert "timeout" in decision.message
    assert "balance" in decision.message


def test_annotations_nobody_knows_are_named_and_harm_nothing() -> None:
    decision = admission.decide([annotated("made-up", "x")], admission.Policy("apps.test", ends_tls=True))[0]
    assert (decision.admitted, decision.reason) == (True, "AnnotationsIgnored")
    assert "made-up is not known" in decision.message


def test_elements_of_a_path_that_is_replaced() -> None:
    assert options.read(annotated("rewrite-target", "/", path="/a/b/")).strip == 2
    assert options.read(annotated("rewrite-target", "/v1/")).rewrite == "/v1"
    with pytest.raises(options.Unreadable, match="at most 8"):
        options.read(annotated("rewrite-target", "/", path="/1/2/3/4/5/6/7/8/9"))


@given(
    st.one_of(
        st.ip_addresses(v=4, network="10.0.0.0/8").flatmap(
            lambda a: st.integers(0, 32).map(lambda n: ipaddress.ip_network((a, n), strict=False))
        ),
        st.ip_addresses(v=6).flatmap(
            lambda a: st.integers(0, 128).map(lambda n: ipaddress.ip_network((a, n), strict=False))
        ),
    ),
    st.data(),
)
def test_beginnings_in_hexadecimal_mean_the_same_network(network: options.Network, data: st.DataObject) -> None:
    begins = options.prefixes(network)
    assert len(begins) <= 8

    def inside(address: Any) -> bool:
        digits = network.max_prefixlen // 4
        text = f"{address.version}/{int(address):0{digits}X}"
        return any(text.startswith(one) for one in begins)

    other = data.draw(st.ip_addresses(v=network.version))
    assert inside(other) == (other in network)
    assert inside(network.network_address)
    assert inside(network.broadcast_address)


def test_a_row_of_options_and_who_may_come() -> None:
    asked = route(timeout="7s", ip_allowlist="192.0.2.0/25", balance="source")
    decision = admission.decide([asked], admission.Policy("apps.test", ends_tls=True))[0]
    made = maps.rows_of(decision, asked, ["10.0.0.1@80"])
    row = made[maps.HTTPS, "r.test/"]
    assert row.endswith(f"@{options.BALANCE}")
    digest = row.split("@")[1]
    assert made[maps.OPTIONS, digest] == f"7000|86400000|-|guarded|0|0|0|0|source|append|-|{digest}"
    allowed = sorted(key for table, key in made if table == maps.ALLOWED)
    assert allowed == [f"{digest}/4/C00002{digit}" for digit in "01234567"]
    for (table, key), value in made.items():
        assert maps.problem(key, value) is None, table


ASKED = {
    "timeout": (options.Options(timeout=1), options.PATIENCE, maps.WITH_OPTIONS),
    "tunnel": (options.Options(tunnel=1), options.ANSWER, maps.WITH_OPTIONS),
    "hsts": (options.Options(hsts="max-age=1"), options.ANSWER, maps.WITH_OPTIONS),
    "rewrite": (options.Options(rewrite=""), options.REWRITE, maps.REWRITING),
    "networks": (options.Options(networks=(ipaddress.ip_network("::/0"),)), options.GUARD, maps.WITH_OPTIONS),
    "concurrent": (options.Options(concurrent=1), options.LIMITS, maps.WITH_OPTIONS),
    "tcp_rate": (options.Options(tcp_rate=1), options.LIMITS, maps.WITH_OPTIONS),
    "http_rate": (options.Options(http_rate=1), options.LIMITS, maps.WITH_OPTIONS),
    "balance": (options.Options(balance="source"), options.BALANCE, maps.WITH_OPTIONS),
    "forwarded": (options.Options(forwarded="never"), options.FORWARDED, maps.REWRITING),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_request_goes_as_far_as_anything_is_asked_for_it(name: str) -> None:
    asked, level, backend = ASKED[name]
    assert asked.level == level
    more = {field.name: getattr(asked, field.name) for field in dataclasses.fields(asked) if field.name == name}
    assert dataclasses.replace(options.Options(timeout=5), **more).level == level
    rows = maps.Rows()
    rows.add_web(maps.HTTP, maps.Place("a.test", ""), ["10.0.0.1@80"], options=asked)
    assert rows[maps.HTTP, "a.test/"].split("@")[2:] == [backend, maps.NO_TRUST, str(level)]


def test_every_field_of_options_is_of_some_level() -> None:
    assert {field.name for field in dataclasses.fields(options.Options)} == {*ASKED, "strip", "ignored"}
