"""Kubeconfigs out of Secrets: what is taken, what is refused and how it is named."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hcp import pki
from hcp.errors import HcpError
from hcp.kube import bounded_yaml, untrusted_kubeconfig

CA = pki.new_ca("ca").cert_pem
PAIR = pki.new_ca("pair")
PEM = base64.b64encode(CA).decode()
GOOD: dict[str, Any] = pki.kubeconfig("https://api.example.com:6443", CA, PAIR.cert_pem, PAIR.key_pem)


def with_(section: str, **fields: Any) -> bytes:
    config = copy.deepcopy(GOOD)
    config[f"{section}s"][0][section].update(fields)
    return json.dumps(config).encode()


def test_our_own_kubeconfigs_pass_unchanged() -> None:
    text = pki.kubeconfig_yaml(GOOD)
    assert untrusted_kubeconfig.plain_text(text) == text
    config = untrusted_kubeconfig.load(text)
    assert (config.server, config.ca_pem, config.auth.key_pem) == (
        "https://api.example.com:6443",
        CA,
        PAIR.key_pem,
    )


def test_only_the_current_context_counts() -> None:
    config = copy.deepcopy(GOOD)
    config["users"].append({"name": "x", "user": {"exec": {"command": "/bin/sh"}}})
    config["contexts"].append({"name": "x", "context": {"cluster": "cluster", "user": "x"}})
    assert untrusted_kubeconfig.plain(json.dumps(config)) == GOOD
    config["current-context"] = "x"
    with pytest.raises(untrusted_kubeconfig.RefusedKubeconfig, match=r"users\[\]\.user\.exec"):
        untrusted_kubeconfig.load(json.dumps(config))


def test_harmless_extras_are_left_out() -> None:
    config = copy.deepcopy(GOOD)
    config["clusters"][0]["cluster"] |= {"extensions": [], "insecure-skip-tls-verify": False, "proxy-url": ""}
    assert untrusted_kubeconfig.plain(json.dumps(config)) == GOOD


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("user", "exec", {}),
        ("user", "tokenFile", "/x"),
        ("user", "token", "a\nb"),
        ("user", "token", {"a": 1}),
        ("user", "token", "x" * 20_000),
        ("user", "client-key", "/x"),
        ("user", "client-key-data", "!"),
        ("user", "client-key-data", base64.b64encode(b"x").decode()),
        ("user", "username", "me"),
        ("user", "as", "you"),
        ("user", "impersonate-user", "you"),
        ("cluster", "server", "http://x"),
        ("cluster", "server", "https://"),
        ("cluster", "server", "https://a b"),
        ("cluster", "server", "https://u:p@x"),
        ("cluster", "server", "https://x?y"),
        ("cluster", "server", "https://x:99999"),
        ("cluster", "server", "https://[::1"),
        ("cluster", "server", "https://169.254.169.254"),
        ("cluster", "server", "https://[fe80::1]"),
        ("cluster", "server", 7),
        ("cluster", "tls-server-name", "a b"),
        ("cluster", "certificate-authority", "/x"),
        ("cluster", "insecure-skip-tls-verify", True),
        ("cluster", "insecure-skip-tls-verify", "false"),
        ("cluster", "proxy-url", "http://x"),
        ("cluster", "certificate-authority-data", ["x"]),
        ("context", "namespace", "A"),
    ],
)
def test_the_refused_field_is_named(section: str, field: str, value: Any) -> None:
    with pytest.raises(untrusted_kubeconfig.RefusedKubeconfig) as refused:
        untrusted_kubeconfig.load(with_(section, **{field: value}))
    assert refused.value.field == f"{section}s[].{section}.{field}"
    assert refused.value.hint


def test_somebody_has_to_be_named() -> None:
    config = copy.deepcopy(GOOD)
    config["users"][0]["user"] = {}
    with pytest.raises(HcpError, match="neither a token"):
        untrusted_kubeconfig.load(json.dumps(config))
    config["users"][0]["user"] = {"client-certificate-data": PEM}
    with pytest.raises(HcpError, match="without the other"):
        untrusted_kubeconfig.load(json.dumps(config))


def test_two_entries_of_one_name_are_refused() -> None:
    """Readers differ in which of them counts."""
    config = copy.deepcopy(GOOD)
    config["users"].append({"name": "admin", "user": {"exec": {}}})
    with pytest.raises(HcpError, match="exactly one entry"):
        untrusted_kubeconfig.load(json.dumps(config))


@pytest.mark.parametrize(
    "text", ["[" * 300_000, "{a: " * 50_000, "a: &x 1\nb: *x", "x: " + "y" * 2_000_000, "a: [", "\x00"]
)
def test_yaml_is_bounded_before_it_is_built(text: str) -> None:
    with pytest.raises(HcpError):
        bounded_yaml.load(text, "It")


def test_several_documents_and_aliases_where_they_are_wanted() -> None:
    assert bounded_yaml.load("a: &x 1\nb: *x\n---\n- 2\n", "It", aliases=True) == [{"a": 1, "b": 1}, [2]]


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["clusters", "users", "contexts", "current-context"]),
    _values,
    st.sampled_from(["cluster", "user", "context"]),
    _values,
)
def test_anything_else_is_an_error_for_a_person(section: str, value: Any, inner: str, body: Any) -> None:
    """Never an exception of Python's own, and never anything but plain data in what was taken."""
    for config in (GOOD | {section: value}, copy.deepcopy(GOOD) | {f"{inner}s": [{"name": "admin", inner: body}]}):
        try:
            made = untrusted_kubeconfig.plain(yaml.safe_dump(config))
        except HcpError:
            continue
        assert set(made["users"][0]["user"]) <= {"token", "client-certificate-data", "client-key-data"}
