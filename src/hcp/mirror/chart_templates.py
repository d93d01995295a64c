"""Images in the templates of a chart, as far as their words can be followed: values with defaults, no programs. Pure.

Helm's templates are programs in Go's language. Lines that name an image use little of it: places in values, the chart's
version, a default. What is made by more than that is told, so that nobody believes that nothing is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_LINE = re.compile(r"^\s*-?\s*image:[ \t]*(\S.*?)\s*$", re.MULTILINE)
_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_COMMENT = re.compile(r"\{\{-?\s*/\*.*?\*/\s*-?\}\}", re.DOTALL)
# Steps that change nothing of a text that is an image.
_SAME = ("quote", "squote", "toString", "trim")


def images(text: str, values: Any, chart: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each image that a template names, and whether it is known; else the words that stand for it."""
    for words in _LINE.findall(_COMMENT.sub("", text)):
        known = True

        def put(found: re.Match[str]) -> str:
            nonlocal known
            value = _value(found.group(1), values, chart)
            known = known and value is not None
            return value or ""

        made = _EXPRESSION.sub(put, words).strip("\"' ")
        if known and "{{" not in made:
            yield made.rstrip(":"), True
        else:
            yield words.strip("\"' "), False


def _value(expression: str, values: Any, chart: Mapping[str, Any]) -> str | None:
    """None for what is more than a place with a default."""
    first, *steps = [step.strip() for step in expression.split("|")]
    words = first.split()
    if len(words) == 3 and words[0] == "default":  # the other way to write it
        first, steps = words[2], [f"default {words[1]}", *steps]
    found = _term(first, values, chart)
    for step in steps:
        name, _, more = step.partition(" ")
        if name == "default" and found is not None:
            found = found or _term(more.strip(), values, chart)
        elif name not in _SAME:
            return None
    return found


def _term(word: str, values: Any, chart: Mapping[str, Any]) -> str | None:
    if len(word) > 1 and word[0] == word[-1] == '"':
        return word[1:-1]
    root, _, path = word.lstrip("$").removeprefix(".").partition(".")
    if root == "Chart" and path in ("AppVersion", "Version"):
        return str(chart.get(path[0].lower() + path[1:]) or "")
    if root != "Values" or not re.fullmatch(r"[\w.-]+", path):
        return None
    for step in path.split("."):
        values = values.get(step) if isinstance(values, Mapping) else None
    if values is None:
        return ""
    return str(values) if isinstance(values, str | int | float) else None
