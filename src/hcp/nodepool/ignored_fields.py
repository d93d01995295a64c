"""Fields of a NodePool that are kept without effect: said in conditions, so that nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.runtime.conditions import Verdict

_NOT_OURS = "machines of platform None are your own: nobody here makes, replaces or ends one"


def unmanaged(spec: Mapping[str, Any]) -> Verdict:
    """As `fields`, for machines of the user's own: what would make, mend or end one is not ours to do."""
    named = [name for name in ("autoScaling", "nodeDrainTimeout", "nodeVolumeDetachTimeout") if _asks(spec.get(name))]
    named += ["management.autoRepair"] if at(spec, "management.autoRepair") else []
    named = [f"{', '.join(named)} ({_NOT_OURS})"] if named else []
    return _verdict([*named, *_everywhere(spec)])


def _asks(value: Any) -> bool:
    """Whether a field that the command line always writes was filled in."""
    return bool(value) and value != "0s"


def update_management(spec: Mapping[str, Any]) -> Verdict:
    """Machines of the user's own are not upgraded from here, whatever the type; the pool's document is."""
    kind = at(spec, "management.upgradeType") or "Replace"
    return (
        True,
        c.FIELDS_NOT_HONOURED,
        f"upgradeType {kind} and its settings change nothing: machines of platform None are your own. A new release or "
        "configuration is for machines that join from then on; replace those that are there",
    )


def followed(without_effect: Sequence[str]) -> Verdict:
    """Whether all of a configuration that is followed has an effect; what has none is named."""
    if without_effect:
        return True, c.FIELDS_NOT_HONOURED, f"Without effect: {'; '.join(dict.fromkeys(without_effect))}"[:2000]
    return True, c.AS_EXPECTED, ""


def fields(spec: Mapping[str, Any], not_scaling: str = "") -> Verdict:
    """Whether every field of the spec is acted on; those that are not, each with what happens instead.

    ``not_scaling`` says why the load does not decide the size of a pool that asks for it.
    """
    named = [f"autoScaling ({not_scaling})"] if not_scaling else []
    return _verdict([*named, *_everywhere(spec)])


def _everywhere(spec: Mapping[str, Any]) -> list[str]:
    """Fields without effect on any platform."""
    named = []
    if spec.get("osImageStream"):
        named.append("osImageStream (the release decides the operating system)")
    return named


def _verdict(named: list[str]) -> Verdict:
    if named:
        return False, c.FIELDS_NOT_HONOURED, f"Accepted but without effect in this version: {'; '.join(named)}"
    return True, c.AS_EXPECTED, "Every field of the spec is acted on"
