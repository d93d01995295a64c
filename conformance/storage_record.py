"""What became of each spec of the storage suite, as a table that outlives the machine it ran on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.report import Result

_COLUMNS = ("state", "seconds", "spec", "why")
_WHY = 300


def write(names: Iterable[str], known: Mapping[str, Result]) -> str:
    """Specs in the order of their names, so that two records differ only where results do."""
    rows = [_row(known[name]) for name in sorted(names) if name in known]
    return "".join("\t".join(row) + "\n" for row in (_COLUMNS, *rows))


def read(text: str) -> dict[str, Result]:
    found: dict[str, Result] = {}
    for number, line in enumerate(text.splitlines()[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(_COLUMNS):
            raise ValueError(f"line {number} has {len(cells)} columns; there are {', '.join(_COLUMNS)}")
        state, seconds, name, why = cells
        found[name] = Result(name, state, float(seconds), why)
    return found


def _row(one: Result) -> tuple[str, ...]:
    why = "" if one.state == "passed" else " ".join(one.why.split())[:_WHY]
    return (one.state, f"{one.seconds:.0f}", one.name, why)
