import base64
import datetime as dt

import pytest

from hcp import pki
from hcp.errors import HcpError
from hcp.ignition.catalog import Catalog
from hcp.ignition.certs import Wanted, ca_secret, choose, read_pair, serving_leaf, serving_secret
from hcp.ignition.limits import RateLimit
from hcp.ignition.server import BootstrapServer, bearer_token
from hcp.ignition.store import MAX_DOCUMENT, Stored, document_secret, pack, secret_name, stored
from hcp.ignition.tokens import ROTATE_AFTER, Tokens, parse_stamp, rotated, stamp, until_rotation

NOW = dt.datetime.now(dt.UTC)


async def _ignore(_entry: Stored) -> None:
    return None


def server(catalog: Catalog) -> BootstrapServer:
    return BootstrapServer(catalog, reached=_ignore, audit=lambda line: None)


def filled(expires: dt.datetime | None = None) -> Catalog:
    catalog = Catalog()
    catalog.put(
        document_secret(
            "clusters-demo", "clusters/demo", "aa", token="t1", old_token="t0", payload=b"{}", expires=expires
        )
    )
    return catalog


def ask(
    catalog: Catalog, token: str | None, pool: str = "clusters/demo", path: str = "/ignition", target: str = "aa"
) -> int:
    return server(catalog).answer("GET", path, "10.0.0.1", token, pool, target).status


def test_codes() -> None:
    catalog = filled()
    assert ask(catalog, "t1") == 200
    assert ask(catalog, "t0") == 200
    assert ask(catalog, "nope") == 511
    assert ask(catalog, None) == 401
    assert ask(catalog, "t1", path="/other") == 404
    assert ask(catalog, "t1", path="/ignition/x") == 404
    assert server(catalog).answer("POST", "/ignition", "", "t1", "clusters/demo", "aa").status == 405


def test_a_token_of_another_pool_or_configuration_is_refused() -> None:
    assert ask(filled(), "t1", pool="clusters/other") == 401
    assert ask(filled(), "t1", pool="") == 401
    assert ask(filled(), "t1", target="bb") == 401


def test_an_expired_token_is_unknown() -> None:
    assert ask(filled(NOW - dt.timedelta(seconds=5)), "t1") == 511
    assert ask(filled(NOW + dt.timedelta(hours=1)), "t1") == 200


def test_a_damaged_document_is_an_error() -> None:
    catalog = Catalog()
    secret = document_secret("n", "a/b", "aa", token="t", old_token="", payload=b"{}")
    secret["data"]["payload"] = "AAAA"
    catalog.put(secret)
    assert server(catalog).answer("GET", "/ignition", "", "t", "a/b", "aa").status == 500


def test_too_many_requests_with_one_token() -> None:
    catalog = filled()
    front = server(catalog)
    codes = [front.answer("GET", "/ignition", "r", "t1", "clusters/demo", "aa").status for _ in range(30)]
    assert codes[0] == 200 and codes[-1] == 503


def test_rotation_replaces_the_index() -> None:
    catalog = filled()
    catalog.put(document_secret("clusters-demo", "clusters/demo", "aa", token="t2", old_token="t1", payload=b"{}"))
    assert [ask(catalog, token) for token in ("t2", "t1", "t0")] == [200, 200, 511]
    catalog.drop(secret_name("clusters-demo", "demo", "aa"))
    assert ask(catalog, "t2") == 511
    assert len(catalog) == 0


def test_bearer() -> None:
    assert bearer_token("Bearer dG9r") == "tok"
    assert [bearer_token(text) for text in ("", "Bearer", "Basic dG9r", "Bearer !!", "Bearer /w==")] == [None] * 5


def test_rate_limit_refills_and_forgets() -> None:
    limit = RateLimit(rate=1, burst=2, keys=2)
    assert [limit.allow("a", 0) for _ in range(3)] == [True, True, False]
    assert limit.allow("a", 1.0)
    limit.allow("b", 1)
    limit.allow("c", 1)
    assert limit.allow("a", 1.0), "the oldest key was forgotten"


def test_a_document_that_unpacks_to_too_much_is_refused_and_never_served() -> None:
    with pytest.raises(HcpError, match="a/b is too large"):
        document_secret("n", "a/b", "cc", token="t", old_token="", payload=b"x" * (MAX_DOCUMENT + 1))
    secret = document_secret("n", "a/b", "cc", token="t", old_token="", payload=b"x")
    secret["data"]["payload"] = base64.b64encode(pack(b"x" * (MAX_DOCUMENT + 1))).decode()
    assert stored(secret).payload() == b""


def test_a_damaged_secret_is_an_empty_document_and_no_error() -> None:
    secret = document_secret("n", "a/b", "cc", token="t", old_token="", payload=b"x")
    secret["data"] = {"token": "/w==", "old_token": "%", "payload": "AAAA"}
    assert stored(secret).payload() == b""


def test_names_that_no_certificate_can_have_and_names_too_many_are_left_out() -> None:
    wanted = [
        Wanted("bücher", "bad/one", "1"),
        Wanted("x" * 64 + ".example.com", "bad/two", "1"),
        Wanted("ignition.good.example.com", "good/one", "9"),
        Wanted("192.0.2.9", "good/two", "9"),
        *(Wanted(f"{number}.{'x' * 60}.greedy.example.com", f"greedy/{number}", "2") for number in range(1000)),
    ]
    chosen = choose(["own.example.com", "ö"], wanted)
    assert {"own.example.com", "ignition.good.example.com", "192.0.2.9"} <= set(chosen.hosts)
    assert {"bad/one", "bad/two", "greedy/999"} <= set(chosen.refused)
    assert "greedy/0" not in chosen.refused
    pair = pki.issue_leaf(pki.new_ca("test"), serving_leaf(chosen.hosts))
    assert len(pair.cert_pem) < 64_000


def test_secret_round_trip() -> None:
    secret = document_secret("n", "a/b", "cc", token="t", old_token="o", payload=b"body", expires=NOW)
    entry = stored(secret)
    assert (entry.node_pool, entry.target, entry.token, entry.old_token, entry.payload()) == (
        "a/b",
        "cc",
        "t",
        "o",
        b"body",
    )
    assert entry.expires == NOW.replace(microsecond=0)
    assert document_secret("n", "a/b", "cc", token="t", old_token="o", payload=b"body", expires=NOW) == secret


def test_token_life() -> None:
    tokens = Tokens("a", "", NOW)
    assert rotated(tokens, NOW + ROTATE_AFTER / 2) is tokens
    later = rotated(tokens, NOW + ROTATE_AFTER)
    assert later.previous == "a" and later.current != "a"
    assert until_rotation(tokens, NOW + 2 * ROTATE_AFTER) == 0
    assert parse_stamp(stamp(NOW)) == NOW.replace(microsecond=0)
    assert parse_stamp("soon") is None


def test_certificates() -> None:
    ca = pki.new_ca("ignition-root-ca")
    leaf = serving_leaf(["ign.example.com", "192.0.2.7"])
    assert "ign.example.com" in leaf.dns and "192.0.2.7" in leaf.ips and "ignition-server.hypershift.svc" in leaf.dns
    secret = serving_secret(pki.issue_leaf(ca, leaf), ca.cert_pem)
    assert not pki.needs_renewal(read_pair(secret, "tls.crt", "tls.key"), ca.cert_pem, leaf)
    assert read_pair(ca_secret(ca), "ca.crt", "ca.key") == ca


def test_no_choice_of_names_gives_two_documents_one_name() -> None:
    assert secret_name("a-b", "c-d", "aa") != secret_name("a-b-c", "d", "aa")
