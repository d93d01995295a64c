"""An etcd that somebody else runs."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.support.unit import controlplane as sample

from hcp import pki
from hcp.controlplane import apiserver, certs, disruption, etcd, foreign_etcd, policies

URL = "https://etcd.example.com:2379"


def given(**changes: bytes) -> dict[str, Any]:
    """The user's Secret; `changes` are files by the end of their names."""
    ca = pki.new_ca("their-etcd")
    pair = pki.issue(ca, "us", usage="client")
    files = {"ca_crt": ca.cert_pem, "crt": pair.cert_pem, "key": pair.key_pem, **changes}
    called = {"ca_crt": "etcd-client-ca.crt", "crt": "etcd-client.crt", "key": "etcd-client.key"}
    return {"data": {called[end]: base64.b64encode(value).decode() for end, value in files.items()}}


def test_nothing_of_an_own_etcd_is_made() -> None:
    p = sample.params(foreign_etcd=URL)
    assert etcd.services(p) == []
    assert not [leaf.name for leaf in certs.leaves(p) if leaf.authority == "etcd-signer"]
    assert [b["metadata"]["name"] for b in disruption.budgets(p)] == ["kube-apiserver"]
    assert "operator-to-etcd" not in [one["metadata"]["name"] for one in policies.policies(p)]
    assert f"--etcd-servers={URL}" in apiserver.arguments(p)
    assert "--etcd-servers=https://etcd-client:2379" in apiserver.arguments(sample.params())


def test_the_api_server_mounts_the_users_files_under_its_own_names() -> None:
    files, problem = foreign_etcd.read(given())
    assert problem == ""
    made = foreign_etcd.client_secret(sample.params(foreign_etcd=URL), files)
    ours = {leaf.name: leaf for leaf in certs.leaves(sample.params())}[made["metadata"]["name"]]
    assert made["data"].keys() == {ours.cert_key, ours.private_key, "ca.crt"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "no key etcd-client-ca.crt"),
        ({"data": {"etcd-client-ca.crt": "%%%"}}, "not base64"),
        (given(ca_crt=b"x"), "not a certificate"),
        (given(crt=b"x"), "not a certificate"),
        (given(key=b"x"), "not a private key"),
        (given(key=pki.new_ca("another").key_pem), "not the key of"),
    ],
)
def test_files_that_cannot_log_in_are_named(source: Any, words: str) -> None:
    assert words in foreign_etcd.read(source)[1]


@pytest.mark.parametrize("good", [URL, f"{URL}/", "https://192.0.2.7:2379", "https://[2001:db8::7]:2379", "https://a"])
def test_addresses_that_are_one(good: str) -> None:
    assert foreign_etcd.endpoint_problem(good, ["10.0.0.0/8", "fd00::/8"]) == ""


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("http://etcd.example.com:2379", "https://etcd.example.com:2379"),
        ("https://", "looks like"),
        ("https://a:2379,https://b:2379", "not one address"),
        ("https://user:secret@a:2379", "not one address"),
        ("https://a:2379/path", "not one address"),
        ("https://a:2379?x=y", "not one address"),
        ("https://a:99999", "not one address"),
        ("https://under_score:2379", "cannot be the name of a host"),
        ("https://127.0.0.1:2379", "nothing answers there"),
        ("https://169.254.169.254:2379", "nothing answers there"),
        ("https://10.2.3.4:2379", "network of the management cluster"),
        ("https://[fd00::1]:2379", "network of the management cluster"),
    ],
)
def test_addresses_that_cannot_be_used_are_named(bad: str, words: str) -> None:
    assert words in foreign_etcd.endpoint_problem(bad, ["10.0.0.0/8", "fd00::/8"])
