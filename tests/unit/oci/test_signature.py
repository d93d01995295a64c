"""Signatures over digests, and keys that do for them."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from hcp.errors import HcpError
from hcp.oci import signature

DIGEST = "sha256:" + "a" * 64
KEY = ec.generate_private_key(ec.SECP256R1())
_PKCS8 = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)


def test_a_signature_holds_for_one_digest_and_one_key() -> None:
    document = signature.payload("r.example.com/team/release", DIGEST)
    said = signature.sign(KEY, document)
    assert signature.is_valid(KEY.public_key(), document, said, DIGEST)
    assert not signature.is_valid(KEY.public_key(), document, said, "sha256:" + "b" * 64)
    assert not signature.is_valid(KEY.public_key(), document.replace(b"team", b"evil"), said, DIGEST)
    assert not signature.is_valid(ec.generate_private_key(ec.SECP256R1()).public_key(), document, said, DIGEST)
    for nonsense in ("", "%%%", "AAAA"):
        assert not signature.is_valid(KEY.public_key(), document, nonsense, DIGEST)


def test_a_signed_document_of_another_kind_does_not_count() -> None:
    document = json.dumps({"critical": {"type": "atomic", "image": {"docker-manifest-digest": DIGEST}}}).encode()
    assert not signature.is_valid(KEY.public_key(), document, signature.sign(KEY, document), DIGEST)


def test_keys_with_and_without_a_password_are_read() -> None:
    locked = KEY.private_bytes(*_PKCS8, serialization.BestAvailableEncryption(b"secret"))
    assert signature.private_key(locked, b"secret").private_numbers() == KEY.private_numbers()
    with pytest.raises(HcpError) as caught:
        signature.private_key(locked)
    assert "HCP_SIGN_PASSWORD" in str(caught.value.hint)


def test_other_keys_are_refused_in_words() -> None:
    other = rsa.generate_private_key(65537, 2048).private_bytes(*_PKCS8, serialization.NoEncryption())
    wide = ec.generate_private_key(ec.SECP384R1()).private_bytes(*_PKCS8, serialization.NoEncryption())
    for pem in (other, wide):
        with pytest.raises(HcpError, match="P-256"):
            signature.private_key(pem)
    with pytest.raises(HcpError, match="cosign's own way"):
        signature.private_key(b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
    with pytest.raises(HcpError, match="cannot be used"):
        signature.public_key(b"no key")
