"""`configuration.apiServer.tlsSecurityProfile`: which TLS versions and ciphers the control plane speaks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import tls_profiles
from hcp.api.paths import at
from hcp.api.tls_profiles import TLS13, Profile

__all__ = ["FIELD", "TLS13", "Profile", "chosen_ciphers", "left_out", "of", "problems"]
FIELD = "configuration.apiServer.tlsSecurityProfile"


def of(api_config: Mapping[str, Any]) -> Profile:
    """`api_config` is `configuration.apiServer`."""
    return tls_profiles.of(api_config.get("tlsSecurityProfile") or {})


def chosen_ciphers(api_config: Mapping[str, Any]) -> dict[str, str]:
    """The flag of parts that leave them to Go while nobody asks for a profile."""
    asked = (api_config.get("tlsSecurityProfile") or {}).get("type")
    return {"tls-cipher-suites": ",".join(of(api_config).ciphers)} if asked else {}


def problems(spec: Mapping[str, Any]) -> list[str]:
    """Why a profile would keep the API server from starting."""
    text = tls_profiles.wrong(at(spec, FIELD) or {})
    return [f"{FIELD}.custom {text}"] if text else []


def left_out(spec: Mapping[str, Any]) -> list[str]:
    """Ciphers that are asked for and that nobody here speaks."""
    unknown = tls_profiles.left_out(at(spec, FIELD) or {})
    return [f"{FIELD}: ciphers that Go does not have are left out: {', '.join(unknown)}"] if unknown else []
