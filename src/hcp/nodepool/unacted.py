"""Fields of a NodePool that are kept without effect: said in conditions, so that nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.nodepool.machines import smallest_size

Verdict = tuple[bool, str, str]
_TUNING = "node tuning is not part of a Kubernetes release"


def autoscaling(spec: Mapping[str, Any]) -> Verdict:
    """Whether the load decides the size: never yet, and a pool that asks for it hears what happens instead."""
    scaling = spec.get("autoScaling")
    if not scaling:
        return False, c.AS_EXPECTED, ""
    low, high = smallest_size(scaling), scaling.get("max")
    message = (
        f"No autoscaler runs yet: the pool starts with its minimum of {low} and its size stays as it is; "
        f"an autoscaler of your own may move it between {low} and {high}"
    )
    return False, c.FIELDS_NOT_HONOURED, message


def tuning(config_maps: Mapping[str, Mapping[str, Any] | None]) -> Verdict:
    """Whether the ConfigMaps of `tuningConfig` are there (None: missing); good ones change nothing on the nodes."""
    if not config_maps:
        return True, c.AS_EXPECTED, ""
    for name, item in config_maps.items():
        if item is None:
            return False, c.VALIDATION_FAILED, f"ConfigMap {name!r} named in spec.tuningConfig does not exist"
        if not (item.get("data") or {}).get("tuning"):
            return False, c.VALIDATION_FAILED, f"ConfigMap {name!r} has no key 'tuning'"
    return True, c.FIELDS_NOT_HONOURED, f"The ConfigMaps are there, but change nothing: {_TUNING}"


def fields(spec: Mapping[str, Any]) -> Verdict:
    """Whether every field of the spec is acted on; those that are not, each with what happens instead."""
    named = []
    if spec.get("autoScaling"):
        named.append(f"autoScaling ({autoscaling(spec)[2]})")
    if spec.get("tuningConfig"):
        named.append(f"tuningConfig ({_TUNING})")
    if spec.get("osImageStream"):
        named.append("osImageStream (the release decides the operating system)")
    if named:
        return False, c.FIELDS_NOT_HONOURED, f"Accepted but without effect in this version: {'; '.join(named)}"
    return True, c.AS_EXPECTED, "Every field of the spec is acted on"
