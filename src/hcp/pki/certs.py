"""Certificate authorities and the leaves they sign."""

from __future__ import annotations

import datetime as dt
import ipaddress
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hcp.errors import HcpError

CA_DAYS = 3650
LEAF_DAYS = 365
RENEW_BEFORE_DAYS = 30
# Clocks of nodes may run behind ours; a certificate must be valid the moment it is made.
_BACKDATE = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (or a chain) and its private key, both PEM."""

    cert_pem: bytes
    key_pem: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a leaf certificate shall say. Equal leaves need no new certificate."""

    cn: str
    orgs: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    usage: str = "server"
    days: float = LEAF_DAYS


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise HcpError("The signing key of the certificate authority is not an EC key")
    return key


def _name(cn: str, orgs: Iterable[str] = ()) -> x509.Name:
    # Names of service accounts are longer than the 64 characters X.520 asks for; every Kubernetes component takes them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o, _validate=False) for o in orgs]
        return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, cn, _validate=False)])


def new_ca(cn: str, days: float = CA_DAYS) -> KeyPair:
    """Make a self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    name = _name(cn)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(cert.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _usages(usage: str) -> list[x509.ObjectIdentifier]:
    table = {
        "server": [ExtendedKeyUsageOID.SERVER_AUTH],
        "client": [ExtendedKeyUsageOID.CLIENT_AUTH],
        "both": [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
    }
    if usage not in table:
        raise HcpError(f"A certificate cannot be made for usage '{usage}'", hint="Use server, client or both.")
    return table[usage]


def _sans(dns: Iterable[str], ips: Iterable[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(d) for d in dict.fromkeys(dns)]
    names.extend(x509.IPAddress(ipaddress.ip_address(i)) for i in dict.fromkeys(ips))
    return names


def issue(
    ca: KeyPair,
    cn: str,
    orgs: Iterable[str] = (),
    dns: Iterable[str] = (),
    ips: Iterable[str] = (),
    usage: str = "server",
    days: int = LEAF_DAYS,
) -> KeyPair:
    """Make a key and have `ca` sign a certificate for it."""
    return issue_leaf(ca, Leaf(cn, tuple(orgs), tuple(dns), tuple(ips), usage, days))


def issue_leaf(ca: KeyPair, leaf: Leaf) -> KeyPair:
    """Like `issue`, from a description that can be compared later."""
    ca_cert = x509.load_pem_x509_certificate(ca.cert_pem)
    ca_key = _load_key(ca.key_pem)
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(leaf.cn, leaf.orgs))
        .issuer_name(ca_cert.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(min(now + dt.timedelta(days=leaf.days), ca_cert.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(_usages(leaf.usage)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
    )
    if sans := _sans(leaf.dns, leaf.ips):
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    cert = builder.sign(ca_key, hashes.SHA256())
    return KeyPair(cert.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def not_after(cert_pem: bytes) -> dt.datetime:
    """The end of a certificate's life, in UTC."""
    return x509.load_pem_x509_certificate(cert_pem).not_valid_after_utc


def needs_renewal(
    pair: KeyPair,
    ca_cert_pem: bytes,
    leaf: Leaf,
    now: dt.datetime | None = None,
    margin: dt.timedelta = dt.timedelta(days=RENEW_BEFORE_DAYS),
) -> bool:
    """Whether a stored leaf must be made anew: near its end, signed by another CA, or saying something else."""
    try:
        cert = x509.load_pem_x509_certificate(pair.cert_pem)
        key = serialization.load_pem_private_key(pair.key_pem, None)
        ca = x509.load_pem_x509_certificate(ca_cert_pem)
        cert.verify_directly_issued_by(ca)
    except Exception:
        # Whatever is wrong with what was stored (not PEM, another CA, another algorithm), a new leaf repairs it.
        return True
    now = now or dt.datetime.now(dt.UTC)
    life = cert.not_valid_after_utc - cert.not_valid_before_utc
    if cert.not_valid_after_utc - now < min(margin, life / 3) and cert.not_valid_after_utc < ca.not_valid_after_utc:
        return True
    if key.public_key() != cert.public_key() or _subject(cert) != _name(leaf.cn, leaf.orgs):
        return True
    return _extension_names(cert) != set(_sans(leaf.dns, leaf.ips)) or _extension_usages(cert) != set(
        _usages(leaf.usage)
    )


def _subject(cert: x509.Certificate) -> x509.Name:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cert.subject


def _extension_names(cert: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _extension_usages(cert: x509.Certificate) -> set[x509.ObjectIdentifier]:
    try:
        return set(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return set()


def new_signing_key() -> bytes:
    """A private key for service account tokens (ES256)."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def public_key(private_pem: bytes) -> bytes:
    """The public half of a PEM private key of any kind."""
    key = serialization.load_pem_private_key(private_pem, None)
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def readable_certificates(pem: bytes) -> bool:
    """Whether it holds certificates, and nothing that cannot be read."""
    try:
        return bool(x509.load_pem_x509_certificates(pem))
    except ValueError:
        return False


def pair_problem(pair: KeyPair) -> str:
    """Why a server could not show this certificate; empty when it could."""
    try:
        certificate = x509.load_pem_x509_certificates(pair.cert_pem)[0]
    except (ValueError, IndexError):
        return "holds no certificate"
    try:
        key = serialization.load_pem_private_key(pair.key_pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "holds no key that can be read without a password"
    return "" if key.public_key() == certificate.public_key() else "holds a key of another certificate"


def names_in(cert_pem: bytes) -> tuple[str, ...]:
    """The host names that a certificate is made out to."""
    certificate = x509.load_pem_x509_certificates(cert_pem)[0]
    found = [one.value for one in _extension_names(certificate) if isinstance(one, x509.DNSName)]
    common = [str(one.value) for one in _subject(certificate).get_attributes_for_oid(NameOID.COMMON_NAME)]
    return tuple(sorted({*found, *common}))
