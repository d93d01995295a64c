"""Small checks of JSON values, put together to a tree that says which fields a VM may have and of which type.

The KubeVirt provider reads templates of all clusters into fixed types: one value of a wrong type stops it for
everybody. So nothing is written whose type was not looked at here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from hcp.errors import HcpError
from hcp.runtime import quantity

Rule = Callable[[Any, Any, str], None]
INT32 = 2**31 - 1
MAX_ITEMS = 64
MAX_TEXT = 512
_PLAIN = re.compile(r"[ -~]*")


class Refused(HcpError):
    """A patch that asks for more than it may; the sentence names the field."""


def refuse(path: str, why: str) -> Refused:
    return Refused(
        f"the JSON patch is refused: {path} {why}",
        hint="docs/node-pools.md lists what a patch may change; most other things are fields of the NodePool",
    )


def same(one: Any, two: Any) -> bool:
    """Equal as JSON, where 1, 1.0 and true are three things."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def check(rule: Rule | None, value: Any, base: Any, path: str) -> None:
    """What is as we made it is good; what differs needs a rule, and has to pass it."""
    if value is None:
        raise refuse(path, "is null; a patch takes a field away with op remove")
    if same(value, base):
        return
    if rule is None:
        raise refuse(path, "may not be changed by a patch")
    rule(value, base, path)


def text(pattern: str = "", longest: int = MAX_TEXT) -> Rule:
    compiled = re.compile(pattern) if pattern else _PLAIN

    def rule(value: Any, _base: Any, path: str) -> None:
        if not isinstance(value, str) or len(value) > longest or not compiled.fullmatch(value):
            raise refuse(
                path, f"has to be a text{' like ' + pattern if pattern else ''} of at most {longest} characters"
            )

    return rule


def one_of(*values: str) -> Rule:
    def rule(value: Any, _base: Any, path: str) -> None:
        if value not in values:
            raise refuse(path, f"has to be one of {', '.join(values)}")

    return rule


def number(low: int = 0, high: int = INT32) -> Rule:
    def rule(value: Any, _base: Any, path: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise refuse(path, f"has to be a whole number from {low} to {high}")

    return rule


def flag(value: Any, _base: Any, path: str) -> None:
    if not isinstance(value, bool):
        raise refuse(path, "has to be true or false")


def amount(value: Any, _base: Any, path: str) -> None:
    """A quantity, as text or as a whole number."""
    if isinstance(value, bool) or not isinstance(value, str | int) or len(str(value)) > 32:
        raise refuse(path, "has to be a quantity such as 8Gi")
    found = quantity.parse(str(value))
    if found is None or not 0 <= found <= 2**60:
        raise refuse(path, "has to be a quantity such as 8Gi")


def fields(**rules: Rule) -> Rule:
    """An object with these fields and no others; one that we set ourselves may be taken away if it has a rule."""

    def rule(value: Any, base: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise refuse(path, "has to be an object")
        known: Mapping[str, Any] = base if isinstance(base, dict) else {}
        for key in [*value, *(key for key in known if key not in value)]:
            inner = f"{path}.{key}" if path else str(key)
            if len(inner) > 300:
                raise refuse(path, "has a field with too long a name")
            if key in value:
                check(rules.get(key), value[key], known.get(key), inner)
            elif key not in rules:
                raise refuse(inner, "may not be removed by a patch")

    return rule


def texts(keys: str, values: str = r"[ -~]{0,512}") -> Rule:
    """A map of texts, such as a node selector."""
    key_form, value_form = re.compile(keys), re.compile(values)

    def rule(value: Any, base: Any, path: str) -> None:
        if not isinstance(value, dict) or len(value) > MAX_ITEMS:
            raise refuse(path, f"has to be an object with at most {MAX_ITEMS} texts")
        for key, inner in value.items():
            if key in (base or {}) and same(inner, base[key]):
                continue
            if not key_form.fullmatch(key) or not isinstance(inner, str) or not value_form.fullmatch(inner):
                raise refuse(f"{path}.{key[:100]}", "is no key a patch may set, or its value is no text")

    return rule


def amounts(keys: str) -> Rule:
    form = re.compile(keys)

    def rule(value: Any, _base: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise refuse(path, "has to be an object")
        for key, inner in value.items():
            if not form.fullmatch(key):
                raise refuse(f"{path}.{key[:100]}", "is no resource a patch may ask for")
            amount(inner, None, f"{path}.{key}")

    return rule


def items(rule: Rule, most: int = MAX_ITEMS) -> Rule:
    """A list; elements with a name are held against ours of the same name, others stand for themselves."""

    def whole(value: Any, base: Any, path: str) -> None:
        if not isinstance(value, list) or len(value) > most:
            raise refuse(path, f"has to be a list of at most {most} elements")
        known = {name_of(element): element for element in base or []}
        for place, element in enumerate(value):
            name = name_of(element)
            check(rule, element, known.get(name) if name else None, f"{path}[{place}]")

    return whole


def name_of(element: Any) -> str:
    """The name of a list's element, its own or its metadata's; empty for one without."""
    if not isinstance(element, dict):
        return ""
    inner = element.get("metadata")
    name = element.get("name", inner.get("name") if isinstance(inner, dict) else None)
    return name if isinstance(name, str) else ""
