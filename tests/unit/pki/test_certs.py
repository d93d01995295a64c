from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp import pki
from hcp.errors import HcpError

LEAF = pki.Leaf("kubernetes", ("kubernetes",), ("kubernetes", "kubernetes.default"), ("172.20.0.1", "::1"), "both")


def test_ca_may_sign_and_leaf_may_not() -> None:
    ca = pki.new_ca("root-ca")
    leaf = pki.issue(ca, "kubernetes", orgs=["a"], dns=["x"], ips=["10.0.0.1"])
    ca_cert, cert = (x509.load_pem_x509_certificate(p) for p in (ca.cert_pem, leaf.cert_pem))
    assert ca_cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    cert.verify_directly_issued_by(ca_cert)
    assert cert.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "a"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ("server", {ExtendedKeyUsageOID.SERVER_AUTH}),
        ("client", {ExtendedKeyUsageOID.CLIENT_AUTH}),
        ("both", {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}),
    ],
)
def test_usage(usage: str, expected: set[x509.ObjectIdentifier]) -> None:
    cert = x509.load_pem_x509_certificate(pki.issue(pki.new_ca("c"), "x", usage=usage).cert_pem)
    assert set(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == expected


def test_unknown_usage_is_refused() -> None:
    with pytest.raises(HcpError):
        pki.issue(pki.new_ca("c"), "x", usage="anything")


def test_long_names_of_service_accounts_work_without_a_warning() -> None:
    ca = pki.new_ca("c")
    leaf = pki.Leaf("system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", usage="client")
    assert not pki.needs_renewal(pki.issue_leaf(ca, leaf), ca.cert_pem, leaf)


def test_fresh_leaf_is_kept() -> None:
    ca = pki.new_ca("c")
    assert not pki.needs_renewal(pki.issue_leaf(ca, LEAF), ca.cert_pem, LEAF)


@pytest.mark.parametrize(
    "other",
    [
        pki.Leaf("other", LEAF.orgs, LEAF.dns, LEAF.ips, LEAF.usage),
        pki.Leaf(LEAF.cn, (), LEAF.dns, LEAF.ips, LEAF.usage),
        pki.Leaf(LEAF.cn, LEAF.orgs, (*LEAF.dns, "more"), LEAF.ips, LEAF.usage),
        pki.Leaf(LEAF.cn, LEAF.orgs, LEAF.dns, ("172.20.0.1",), LEAF.usage),
        pki.Leaf(LEAF.cn, LEAF.orgs, LEAF.dns, LEAF.ips, "server"),
    ],
)
def test_changed_leaf_is_renewed(other: pki.Leaf) -> None:
    ca = pki.new_ca("c")
    assert pki.needs_renewal(pki.issue_leaf(ca, LEAF), ca.cert_pem, other)


def test_other_ca_expiry_garbage_and_swapped_key_are_renewed() -> None:
    ca = pki.new_ca("c")
    pair = pki.issue_leaf(ca, LEAF)
    assert pki.needs_renewal(pair, pki.new_ca("c").cert_pem, LEAF)
    assert pki.needs_renewal(pair, ca.cert_pem, LEAF, now=pki.not_after(pair.cert_pem) - dt.timedelta(days=29))
    assert not pki.needs_renewal(pair, ca.cert_pem, LEAF, now=pki.not_after(pair.cert_pem) - dt.timedelta(days=31))
    assert pki.needs_renewal(pki.KeyPair(b"nonsense", pair.key_pem), ca.cert_pem, LEAF)
    assert pki.needs_renewal(pki.KeyPair(pair.cert_pem, pki.new_signing_key()), ca.cert_pem, LEAF)


def test_leaf_never_outlives_its_ca() -> None:
    ca = pki.new_ca("short", days=10)
    assert pki.not_after(pki.issue(ca, "x").cert_pem) <= pki.not_after(ca.cert_pem)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,10}(\.[a-z]{1,5}){0,2}", fullmatch=True), max_size=5))
def test_same_names_in_any_order_need_nothing(names: list[str]) -> None:
    ca = pki.new_ca("c")
    pair = pki.issue_leaf(ca, pki.Leaf("x", dns=tuple(names)))
    assert not pki.needs_renewal(pair, ca.cert_pem, pki.Leaf("x", dns=tuple(reversed(names))))


def test_kubeconfig_has_everything_inside() -> None:
    config = pki.kubeconfig("https://x:6443", b"ca", b"cert", b"key")
    assert config["current-context"] == "admin"
    assert config["clusters"][0]["cluster"]["server"] == "https://x:6443"
    assert pki.kubeconfig_yaml(config) == pki.kubeconfig_yaml(pki.kubeconfig("https://x:6443", b"ca", b"cert", b"key"))
    assert "certificate-authority-data" not in pki.kubeconfig("s", None, b"c", b"k")["clusters"][0]["cluster"]


def test_public_key_of_signing_key() -> None:
    assert pki.public_key(pki.new_signing_key()).startswith(b"-----BEGIN PUBLIC KEY-----")
