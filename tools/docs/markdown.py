"""Small pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text inside a table: on one line, and nothing in it that Markdown would take for its own."""
    return re.sub(r"([|<*_\[\]])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    return f"`{text}`"


def anchor(heading: str) -> str:
    """The anchor that the site gives to a heading; the same rules as those of Python-Markdown."""
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]
