"""Answers of API servers, whose custom resources may hold what a stranger nested a thousand levels deep.

A server takes ten thousand levels; Python gives up at one thousand, and one such object in a list would keep us from
reading all the others. What lies deeper than any kind needs is cut off and reads as null.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 100
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)


def loads(raw: bytes, *, custom: bool = True) -> Any:
    """Parse; `custom` says that the answer may have fields without a schema, which are looked at for their depth."""
    try:
        value = json.loads(raw)
    except RecursionError:
        return json.loads(_cut(raw))
    return shallow(value) if custom else value


def is_custom(path: str) -> bool:
    """Whether a path is of a kind that somebody defined: those of Kubernetes itself have no room for depth."""
    group = path.removeprefix("/apis/").partition("/")[0] if path.startswith("/apis/") else ""
    return "." in group and not group.endswith(".k8s.io")


def shallow(value: Any) -> Any:
    """The same value, changed in place: what is nested deeper than `MAX_DEPTH` becomes None."""
    left: list[tuple[Any, int]] = [(value, 1)]
    while left:
        found, depth = left.pop()
        entries = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
        deep = []
        for key, inner in entries:
            if isinstance(inner, dict | list):
                if depth < MAX_DEPTH:
                    left.append((inner, depth + 1))
                else:
                    deep.append(key)
        for key in deep:
            found[key] = None
    return value


def depth(value: Any) -> int:
    """How deep a value is nested."""
    deepest = 0
    left: list[tuple[Any, int]] = [(value, 1)]
    while left:
        found, here = left.pop()
        deepest = max(deepest, here)
        inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
        left += [(one, here + 1) for one in inner if isinstance(one, dict | list)]
    return deepest


def _cut(raw: bytes) -> bytes:
    """The text without what is too deep; strings are skipped as a whole, whatever stands in them."""
    kept: list[bytes] = []
    depth, begin = 0, 0
    for token in _TOKENS.finditer(raw):
        sign = raw[token.start()]
        if sign in b"{[":
            if depth == MAX_DEPTH:
                kept += (raw[begin : token.start()], b"null")
            depth += 1
        elif sign in b"}]":
            depth -= 1
            if depth == MAX_DEPTH:
                begin = token.end()
    return b"".join([*kept, raw[begin:]])
