"""Pull secrets, challenges and trusted CAs."""

from __future__ import annotations

import base64
import ssl

import pytest

from hcp import pki
from hcp.errors import HcpError
from hcp.oci import Auths, Reference, Trust
from hcp.oci.auth import Token, parse_challenge
from hcp.oci.trust import from_config_map


def entry(user: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:p:w".encode()).decode()}


def who(auths: Auths, image: str) -> str | None:
    login = auths.find(Reference.parse(image))
    return login.username if login else None


def test_the_most_specific_entry_answers() -> None:
    auths = Auths(
        {
            "auths": {
                "quay.io": entry("host"),
                "quay.io/org": entry("org"),
                "quay.io/org/app": entry("app"),
                "https://index.docker.io/v1/": entry("hub"),
                "https://r.io:5000/": entry("port"),
                "plain.io": {"username": "plain", "password": "x"},
                "empty.io": {},
            }
        }
    )
    assert who(auths, "quay.io/org/app:1") == "app"
    assert who(auths, "quay.io/org/other/deep") == "org"
    assert who(auths, "quay.io/organisation/x") == "host"
    assert who(auths, "nginx") == "hub"
    assert who(auths, "r.io:5000/x/y") == "port"
    assert who(auths, "plain.io/x") == "plain"
    assert who(auths, "empty.io/x") is None
    assert who(auths, "other.io/x") is None
    login = auths.find(Reference.parse("quay.io/a/b"))
    assert login is not None
    assert base64.b64decode(login.basic.removeprefix("Basic ")) == b"host:p:w"
    assert "p:w" not in repr(login)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        '{"auths": []}',
        '{"auths": {"q.io": {"auth": "%%%"}}}',
        '{"auths": {"q.io": {"auth": "YQ=="}}}',
    ],
)
def test_a_broken_pull_secret_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(HcpError, match="pull secret"):
        Auths.parse(text)


def test_challenges_are_read() -> None:
    header = 'Bearer realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull,push"'
    challenge = parse_challenge(header)
    assert (challenge.scheme, challenge.realm) == ("bearer", "https://auth.example.com/token")
    assert (challenge.service, challenge.scope) == ("registry", "repository:a/b:pull,push")
    assert parse_challenge('Basic realm="x"').scheme == "basic"


def test_tokens_of_both_spellings_are_read() -> None:
    assert (token := Token.from_answer({"token": "a", "expires_in": 300})) is not None
    assert token.valid
    assert Token.from_answer({"access_token": "b"}) is not None
    assert Token.from_answer({"token": ""}) is None


def test_keys_of_the_trusted_ca_config_map_name_host_and_port() -> None:
    assert from_config_map({"registry.hcp.test..5000": "PEM", "quay.io": "P2"}) == {
        "registry.hcp.test:5000": "PEM",
        "quay.io": "P2",
    }
    assert from_config_map(None) == {}


def trusts(context: ssl.SSLContext, ca_pem: bytes) -> bool:
    return ssl.PEM_cert_to_DER_cert(ca_pem.decode()) in context.get_ca_certs(binary_form=True)


def test_a_registry_ca_is_trusted_for_that_registry_only() -> None:
    everywhere, one = pki.new_ca("for all").cert_pem, pki.new_ca("for one").cert_pem
    trust = Trust(everywhere, {"r.io:5000": one.decode()})
    assert trusts(trust.context("r.io:5000"), everywhere)
    assert trusts(trust.context("r.io:5000"), one)
    assert trusts(trust.context("r.io"), everywhere)
    assert not trusts(trust.context("r.io"), one)
    assert trust.context("a.io") is trust.context("b.io")
    with pytest.raises(HcpError, match="additional trust bundle"):
        Trust("no pem").context("a.io")
