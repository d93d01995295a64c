"""Signatures of images as cosign makes them with a key: a small document about a digest, signed with ECDSA P-256.

They lie beside the image, as an image with the tag `sha256-<hex>.sig`, one layer per signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hcp.errors import HcpError
from hcp.oci.reference import Reference
from hcp.oci.writer_layout import CONFIG_TYPE, MANIFEST_TYPE, canonical_json

PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
ANNOTATION = "dev.cosignproject.cosign/signature"
_KIND = "cosign container image signature"
_ALGORITHM = ec.ECDSA(hashes.SHA256())


def place(ref: Reference, digest: str) -> Reference:
    """Where the signatures of an image are."""
    return Reference(ref.registry, ref.repository, tag=f"{digest.replace(':', '-')}.sig")


def payload(name: str, digest: str) -> bytes:
    """What is signed: that this digest belongs to this repository."""
    critical = {
        "identity": {"docker-reference": name},
        "image": {"docker-manifest-digest": digest},
        "type": _KIND,
    }
    return canonical_json({"critical": critical, "optional": None})


def sign(key: ec.EllipticCurvePrivateKey, data: bytes) -> str:
    return base64.b64encode(key.sign(data, _ALGORITHM)).decode()


def is_valid(key: ec.EllipticCurvePublicKey, data: bytes, signature: str, digest: str) -> bool:
    """Whether the key signed this document, and the document is about this digest."""
    try:
        key.verify(base64.b64decode(signature, validate=True), data, _ALGORITHM)
        critical = json.loads(data)["critical"]
        return bool(critical["type"] == _KIND and critical["image"]["docker-manifest-digest"] == digest)
    except (InvalidSignature, binascii.Error, ValueError, KeyError, TypeError):
        return False


def layer(data: bytes, signature: str) -> dict[str, Any]:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"mediaType": PAYLOAD_TYPE, "digest": digest, "size": len(data), "annotations": {ANNOTATION: signature}}


def image(layers: list[Mapping[str, Any]]) -> tuple[bytes, bytes]:
    """The configuration and the manifest of an image that holds these signatures."""
    never = "0001-01-01T00:00:00Z"
    config = canonical_json(
        {
            "architecture": "",
            "os": "",
            "created": never,
            "config": {},
            "history": [{"created": never} for _ in layers],
            "rootfs": {"type": "layers", "diff_ids": [one["digest"] for one in layers]},
        }
    )
    described = {
        "mediaType": CONFIG_TYPE,
        "digest": f"sha256:{hashlib.sha256(config).hexdigest()}",
        "size": len(config),
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": described,
        "layers": [dict(one) for one in layers],
    }
    return config, canonical_json(manifest)


def private_key(pem: bytes, password: bytes | None = None) -> ec.EllipticCurvePrivateKey:
    if b"SIGSTORE" in pem or b"COSIGN" in pem:
        raise _bad(
            "it is encrypted in cosign's own way",
            f"give a plain PEM, or one encrypted as PKCS#8: {_MAKE}; cosign import-key-pair takes the same key",
        )
    try:
        found = serialization.load_pem_private_key(pem, password or None)
    except (ValueError, TypeError) as error:
        hint = "HCP_SIGN_PASSWORD holds the password of an encrypted key" if b"ENCRYPTED" in pem else _MAKE
        raise _bad(str(error).split("(")[0].strip() or "it cannot be read", hint) from error
    if not isinstance(found, ec.EllipticCurvePrivateKey) or not isinstance(found.curve, ec.SECP256R1):
        raise _bad("it is no ECDSA key on the curve P-256", _MAKE)
    return found


def public_key(pem: bytes) -> ec.EllipticCurvePublicKey:
    """From a public key, or from the private one."""
    try:
        if b"PRIVATE KEY" in pem:
            return private_key(pem).public_key()
        found = serialization.load_pem_public_key(pem)
    except ValueError as error:
        raise _bad("it is no PEM public key", _PUBLIC) from error
    if not isinstance(found, ec.EllipticCurvePublicKey) or not isinstance(found.curve, ec.SECP256R1):
        raise _bad("it is no ECDSA key on the curve P-256", _PUBLIC)
    return found


_MAKE = "openssl ecparam -name prime256v1 -genkey -noout -out key.pem makes one"
_PUBLIC = "openssl ec -in key.pem -pubout -out key.pub writes the public part of a key"


def _bad(cause: str, hint: str) -> HcpError:
    return HcpError("the key for signatures cannot be used", cause=cause, hint=hint)
