"""What a KubeletConfig of OpenShift asks for besides fields of the kubelet's own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.api import tls_profiles
from hcp.errors import HcpError

_SELECTOR = "machineConfigPoolSelector"
_TYPES = ("Old", "Intermediate", "Modern", "Custom")
_FIELDS = ("kubeletConfig", "logLevel", "autoSizingReserved", "tlsSecurityProfile", _SELECTOR)


@dataclass
class Kubelet:
    """Fields of the kubelet's configuration, and what the node's unit has to know."""

    fields: dict[str, Any] = field(default_factory=dict)
    verbosity: int = 0
    sized: bool | None = None
    """Whether the node computes what it reserves for itself; None where nothing was said."""
    without_effect: list[str] = field(default_factory=list)


def kubelet_settings(spec: Mapping[str, Any]) -> Kubelet:
    """Fields of `kubeletConfig` win over the profile, as they do on OpenShift."""
    unused = sorted(key for key, value in spec.items() if value and key not in _FIELDS)
    found = Kubelet(without_effect=[f"{key} of a KubeletConfig" for key in unused])
    profile = spec.get("tlsSecurityProfile")
    if profile:
        found.fields.update(_tls(profile))
        found.without_effect += [
            f"cipher {cipher} in tlsSecurityProfile of a KubeletConfig" for cipher in tls_profiles.left_out(profile)
        ]
    found.fields.update(spec.get("kubeletConfig") or {})
    if not isinstance(found.fields.get("systemReserved") or {}, Mapping):
        raise HcpError("a KubeletConfig has a systemReserved that is not a mapping")
    found.verbosity = _verbosity(spec.get("logLevel"))
    found.sized = spec.get("autoSizingReserved")
    if found.sized is not None and not isinstance(found.sized, bool):
        raise HcpError(
            f"a KubeletConfig sets autoSizingReserved to {str(found.sized)[:40]!a}, which is not true or false"
        )
    return found


def _tls(asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked.get("type") not in _TYPES:
        raise HcpError(
            f"a KubeletConfig sets tlsSecurityProfile.type to {str(asked.get('type'))[:40]!a}",
            hint=f"use {', '.join(_TYPES)}",
        )
    custom = asked.get("custom") or {}
    version = custom.get("minTLSVersion")
    if version and version not in tls_profiles.VERSIONS:
        raise HcpError(
            f"a KubeletConfig sets tlsSecurityProfile.custom.minTLSVersion to {str(version)[:40]!a}",
            hint=f"use {', '.join(tls_profiles.VERSIONS)}",
        )
    if text := tls_profiles.wrong(asked):
        raise HcpError(f"a KubeletConfig has a tlsSecurityProfile whose custom {text}")
    profile = tls_profiles.of(asked)
    found: dict[str, Any] = {"tlsMinVersion": profile.version}
    if profile.version != tls_profiles.TLS13:  # whose ciphers are not to be chosen
        found["tlsCipherSuites"] = list(profile.ciphers)
    return found


def _verbosity(level: Any) -> int:
    """A number from 1 to 10, as the kubelet counts."""
    if level is None:
        return 0
    if not isinstance(level, int) or isinstance(level, bool) or not 1 <= level <= 10:
        raise HcpError(f"a KubeletConfig sets logLevel to {str(level)[:40]!a}, which is no number from 1 to 10")
    return level
