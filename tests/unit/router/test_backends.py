"""From Service and EndpointSlices to addresses and tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pytest

from hcp.router import admission, backends, haproxy, keys, maps

SERVICE: dict[str, Any] = {
    "spec": {
        "ports": [
            {"name": "https", "port": 443, "targetPort": 6443},
            {"name": "metrics", "port": 9000, "targetPort": "prom"},
        ]
    }
}


def slice_of(*endpoints: tuple[str, bool | None], kind: str = "IPv4") -> dict[str, Any]:
    return {
        "addressType": kind,
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}, {"name": "metrics", "port": 9999}],
        "endpoints": [
            {"addresses": [address], "conditions": {} if ready is None else {"ready": ready}}
            for address, ready in endpoints
        ],
    }


@pytest.mark.parametrize("port", ["https", 6443, "6443", 443, None])
def test_every_way_to_name_the_port(port: Any) -> None:
    assert backends.endpoints(SERVICE, [slice_of(("10.0.0.1", True))], port) == ["10.0.0.1@6443"]


@pytest.mark.parametrize("port", ["metrics", "prom", 9000])
def test_the_second_port(port: Any) -> None:
    assert backends.endpoints(SERVICE, [slice_of(("10.0.0.1", True))], port) == ["10.0.0.1@9999"]


def test_unready_endpoints_are_left_out_and_unknown_ones_kept() -> None:
    slices = [slice_of(("10.0.0.3", None), ("10.0.0.2", False)), slice_of(("fd00::1", True), kind="IPv6")]
    assert backends.endpoints(SERVICE, slices, "https") == ["10.0.0.3@6443", "fd00::1@6443"]


def test_slices_without_a_service_are_matched_by_themselves() -> None:
    assert backends.endpoints(None, [slice_of(("10.0.0.1", True))], "https") == ["10.0.0.1@6443"]
    assert backends.endpoints(None, [slice_of(("10.0.0.1", True))], 1) == []


def test_weights_share_connections() -> None:
    route = {
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {
            "to": {"name": "a", "weight": 75},
            "alternateBackends": [{"name": "b", "weight": 25}, {"name": "c", "weight": 0}],
            "port": {"targetPort": "https"},
        },
    }
    slices = {
        "a": [slice_of(("10.0.0.1", True), ("10.0.0.2", True))],
        "b": [slice_of(("10.0.0.3", True))],
        "c": [slice_of(("10.0.0.4", True))],
    }
    found = Counter(backends.of_route(route, lambda _ns, _name: SERVICE, lambda _ns, name: slices[name]))
    assert found == {"10.0.0.1@6443": 24, "10.0.0.2@6443": 24, "10.0.0.3@6443": 16}


def of_table(rows: dict[maps.Row, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for (table, key), value in rows.items():
        found.setdefault(table, {})[key] = value
    return found


def test_rows_of_a_route() -> None:
    through = {"spec": {"tls": {"termination": "passthrough", "insecureEdgeTerminationPolicy": "Redirect"}}}
    decision = admission.Decision("n/tls", "x.apps.test", True, wildcard=True)
    assert of_table(maps.rows_of(decision, through, ["1.1.1.1@1", "1.1.1.2@1"])) == {
        maps.TLS_COUNT: {"*.apps.test": "2"},
        maps.TLS_ADDRESS: {"*.apps.test#0": "1.1.1.1@1", "*.apps.test#1": "1.1.1.2@1"},
        maps.HTTP: {"*.apps.test/": maps.REDIRECT},
    }
    digest = hashlib.sha256(b"False web.test/api/").hexdigest()[:32]
    web = {"spec": {"path": "/api"}}
    assert of_table(maps.rows_of(admission.Decision("n/web", "web.test", True), web, ["2.2.2.2@2"])) == {
        maps.HTTP: {"web.test/api/": f"1@{digest}@pods-http@plain"},
        maps.ADDRESS: {f"{digest}#0": "2.2.2.2@2"},
    }
    assert not maps.rows_of(admission.Decision("n/web", "web.test", True), web, [])
    assert not maps.rows_of(admission.Decision("n/bad", "bad.test", False, "HostAlreadyClaimed"), web, ["2.2.2.2@2"])


def test_one_place_in_plain_http_and_another_with_tls_have_nothing_in_common() -> None:
    """Routes of Gateways have one of both; what is asked for one must not be asked for the other."""
    digests = {maps.Place("a.test", "/", scheme=scheme).digest for scheme in ("", "http", "https")}
    assert len(digests) == 3


def test_tables_are_cut_into_pieces_that_fit() -> None:
    table = {f"host-{number}.example.com": "value" for number in range(1000)}
    pieces = haproxy.chunks(table)
    assert all(len(piece) <= haproxy.CHUNK for piece in pieces)
    assert sum(piece.count("\n") for piece in pieces) == 1000
    assert haproxy.chunks({}) == []


@pytest.mark.parametrize(
    "row", [("a b", "1"), ("a\n", "1"), ("a", "1\n\nshow info"), ("#a", "1"), ("ä", "1"), ("", "1")]
)
def test_rows_that_would_be_more_than_a_row_are_named(row: tuple[str, str]) -> None:
    assert maps.problem(*row)
    assert maps.problem("x.test", "1@2") is None
    assert maps.problem("x" * 5000, "1")


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1", "x\n\n", "224.0.0.1", 7, None])
def test_addresses_that_no_pod_has_are_left_out(address: Any) -> None:
    assert backends.endpoints(SERVICE, [slice_of((address, True), ("10.0.0.1", True))], "https") == ["10.0.0.1@6443"]


def test_a_service_s_port_is_not_the_pod_s() -> None:
    """An Ingress names the port of the Service, by number or name."""
    service = {"spec": {"ports": [{"name": "a", "port": 80, "targetPort": 6443}, {"name": "https", "port": 443}]}}
    one = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}
    slices = [{**one, "ports": [{"name": "a", "port": 6443}, {"name": "https", "port": 443}]}]
    for named, wanted in ((80, "10.0.0.1@6443"), ("a", "10.0.0.1@6443"), (443, "10.0.0.1@443")):
        route = {"metadata": {"namespace": "n"}, "spec": {"to": {"name": "s"}, "port": {"servicePort": named}}}
        assert backends.of_route(route, lambda _ns, _name: service, lambda _ns, _name: slices) == [wanted]


def test_ends_of_tls_are_told_apart_by_policy() -> None:
    def tables(**tls: str) -> set[str]:
        made = maps.rows_of(admission.Decision("n/r", "r.test", True), {"spec": {"tls": tls}}, ["1@1"])
        return {table for table, _ in made}

    ended = {maps.HTTPS, maps.ADDRESS, maps.TLS_END}
    assert tables(termination="edge") == ended
    assert tables(termination="edge", insecureEdgeTerminationPolicy="Allow") == {
        *ended,
        maps.HTTP,
    }
    redirected = tables(termination="edge", insecureEdgeTerminationPolicy="Redirect")
    assert redirected == {*ended, maps.HTTP}


@pytest.mark.parametrize("spoiler", ["\n\nshow info\n\n", "\r\n\r\n", "; show info"])
def test_nothing_but_pem_reaches_haproxy_as_a_certificate(spoiler: str) -> None:
    block = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----"
    assert keys.blocks(f"{block}{spoiler}{block}") == f"{block}\n{block}"
    assert "show" not in keys.blocks(block.replace("AAAA", f"AAAA{spoiler}"))
    assert "\n\n" not in keys.blocks(block.replace("AAAA", f"AAAA{spoiler}"))
