"""TLS security profiles: which TLS versions and ciphers a server speaks. Pure.

Profiles are those that Mozilla publishes and OpenShift names. Ciphers that Go does not have (those with a plain
Diffie-Hellman exchange) are left out, as OpenShift does; ciphers of TLS 1.3 cannot be chosen in Go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TLS12, TLS13 = "VersionTLS12", "VersionTLS13"
VERSIONS = ("VersionTLS10", "VersionTLS11", TLS12, TLS13)
# Of TLS 1.3: always there.
_MODERN = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
# OpenSSL's name → the one in the standard, which Go and Kubernetes use.
_NAMES = {
    **{name: name for name in _MODERN},
    "ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "ECDHE-RSA-AES128-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "ECDHE-ECDSA-AES128-SHA": "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "ECDHE-RSA-AES128-SHA": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "ECDHE-ECDSA-AES256-SHA": "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "ECDHE-RSA-AES256-SHA": "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "AES128-GCM-SHA256": "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "AES128-SHA256": "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "AES128-SHA": "TLS_RSA_WITH_AES_128_CBC_SHA",
    "AES256-SHA": "TLS_RSA_WITH_AES_256_CBC_SHA",
    "DES-CBC3-SHA": "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}
_STANDARD = frozenset(_NAMES.values())
_GOOD = tuple(_NAMES.values())[:9]
# One of these is what HTTP/2 asks for below TLS 1.3; without it a server in Go does not start.
_HTTP2 = frozenset({"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"})


@dataclass(frozen=True)
class Profile:
    """As flags of Kubernetes name them."""

    version: str = TLS12
    ciphers: tuple[str, ...] = _GOOD


_PROFILES = {
    "Old": Profile("VersionTLS10", tuple(_NAMES.values())),
    "Intermediate": Profile(),
    "Modern": Profile(TLS13, _MODERN),
}


def of(asked: Mapping[str, Any]) -> Profile:
    """`asked` is a `tlsSecurityProfile`. What cannot be used counts as nothing asked: wrong() tells."""
    custom = asked.get("custom") or {}
    if asked.get("type") == "Custom" and not wrong(asked):
        return Profile(str(custom.get("minTLSVersion") or TLS12), _known(custom) or _MODERN)
    return _PROFILES.get(str(asked.get("type") or ""), Profile())


def wrong(asked: Mapping[str, Any]) -> str:
    """Why a server would not start with it, as the end of a sentence about its `custom`."""
    custom = asked.get("custom") or {}
    if asked.get("type") != "Custom" or custom.get("minTLSVersion") == TLS13:
        return ""
    if not custom.get("ciphers"):
        return "names no ciphers"
    if not _HTTP2 & set(_known(custom)):
        return (
            "needs ECDHE-ECDSA-AES128-GCM-SHA256 or ECDHE-RSA-AES128-GCM-SHA256, "
            "which HTTP/2 asks for below TLS 1.3, or minTLSVersion VersionTLS13"
        )
    return ""


def left_out(asked: Mapping[str, Any]) -> list[str]:
    """Ciphers that are asked for and that nobody here speaks."""
    named = (asked.get("custom") or {}).get("ciphers") or () if asked.get("type") == "Custom" else ()
    return [str(one)[:100] for one in named if one not in _NAMES and one not in _STANDARD]


def _known(custom: Mapping[str, Any]) -> tuple[str, ...]:
    found = [_NAMES.get(one, one) for one in custom.get("ciphers") or ()]
    return tuple(dict.fromkeys(one for one in found if one in _STANDARD))
