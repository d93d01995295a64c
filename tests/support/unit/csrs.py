"""Certificate requests of nodes, right by default and wrong in one thing where a test asks for it."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hcp.guest.csr import BOOTSTRAP_USER, CLIENT_SIGNER, SERVING_SIGNER


def request(
    name: str = "system:node:vm-1",
    groups: Sequence[str] = ("system:nodes",),
    names: Sequence[str] = (),
    ips: Sequence[str] = (),
    signer: str = CLIENT_SIGNER,
    user: str = BOOTSTRAP_USER,
    usages: Sequence[str] = ("digital signature", "client auth"),
) -> dict[str, Any]:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    entries: list[x509.GeneralName] = [x509.DNSName(entry) for entry in names]
    entries += [x509.IPAddress(ipaddress.ip_address(entry)) for entry in ips]
    if entries:
        builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": signer,
        "username": user,
        "usages": list(usages),
    }
    return {"metadata": {"name": "csr"}, "spec": spec}


def serving(**more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "names": ["vm-1"],
        "ips": ["10.0.0.5"],
        "signer": SERVING_SIGNER,
        "user": "system:node:vm-1",
        "usages": ["digital signature", "server auth"],
    }
    return request(**{**values, **more})
