"""The version history of a hosted cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_HISTORY = 100
COMPLETED, PARTIAL = "Completed", "Partial"


def advance(
    previous: Mapping[str, Any] | None, *, image: str, version: str, complete: bool, generation: int, now: str
) -> dict[str, Any]:
    """The status block after this pass: a new entry in front when the release changed, completed when all is there."""
    history = [dict(h) for h in (previous or {}).get("history") or []]
    if not history or history[0].get("image") != image:
        if history and history[0].get("state") == PARTIAL and not history[0].get("completionTime"):
            history[0]["completionTime"] = now
        history.insert(0, _entry(image, version, now))
    first = history[0]
    if version:
        first["version"] = version
    if complete and first.get("state") != COMPLETED:
        first |= {"state": COMPLETED, "completionTime": now}
    desired: dict[str, Any] = {"image": image}
    if version:
        desired["version"] = version
    return {"desired": desired, "history": _pruned(history), "observedGeneration": generation}


def completed_version(status: Mapping[str, Any] | None) -> str:
    """The newest version that was rolled out completely."""
    for entry in (status or {}).get("history") or []:
        if entry.get("state") == COMPLETED:
            return str(entry.get("version") or "")
    return ""


def _entry(image: str, version: str, now: str) -> dict[str, Any]:
    # No null values: a merge patch would drop them, and every pass would write them again.
    return {"state": PARTIAL, "startedTime": now, "version": version, "image": image, "verified": False}


def _pruned(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest and the first entry always stay."""
    return history if len(history) <= MAX_HISTORY else [*history[: MAX_HISTORY - 1], history[-1]]
