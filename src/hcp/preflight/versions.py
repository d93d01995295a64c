"""Versions as far as they matter here: numbers, without what comes after them."""

from __future__ import annotations

KUBERNETES = (1, 27, 0)
KUBEVIRT = (1, 0, 0)


def numbers(text: str) -> tuple[int, int, int] | None:
    """`v1.36.3-rc.1+x` is (1, 36, 3); None when it is no version."""
    core = text.strip().removeprefix("v").partition("+")[0].partition("-")[0].split(".")
    if len(core) < 2 or not all(part.isdigit() for part in core[:3]):
        return None
    padded = [int(part) for part in core[:3]] + [0] * (3 - len(core[:3]))
    return padded[0], padded[1], padded[2]


def at_least(text: str, wanted: tuple[int, int, int]) -> bool:
    found = numbers(text)
    return found is not None and found >= wanted


def shown(version: tuple[int, int, int]) -> str:
    return ".".join(str(part) for part in version)
