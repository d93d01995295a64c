"""A small language for describing object fields; each word returns the OpenAPI v3 schema Kubernetes wants.

The types of the API are written once in it. What comes out is a plain dict, so it can be compared, printed as YAML and
walked like any other manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Schema = dict[str, Any]
Rule = dict[str, str]

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
DURATION_PATTERN = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
DNS_SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
MAX_NAME = 253
INT32 = 2**31 - 1


def rule(expression: str, message: str) -> Rule:
    """A CEL rule with the sentence a user sees when it is broken."""
    return {"rule": expression, "message": message}


def immutable(what: str) -> Rule:
    """The value cannot change once both the old and the new object have it."""
    return rule("self == oldSelf", f"{what} is immutable")


def kept(field: str) -> Rule:
    """On the parent: ``field`` cannot be removed once it was set."""
    return rule(f"!has(oldSelf.{field}) || has(self.{field})", f"{field} is immutable and cannot be removed once set")


def settled(field: str) -> Rule:
    """On the parent: ``field`` can be neither added nor removed later."""
    return rule(f"has(oldSelf.{field}) == has(self.{field})", f"{field} is immutable, it cannot be added or removed")


def _finish(schema: Schema, doc: str, default: object, rules: Iterable[Rule]) -> Schema:
    if doc:
        schema["description"] = doc
    if default is not None:
        schema["default"] = default
    found = list(rules)
    if found:
        schema["x-kubernetes-validations"] = found
    return schema


def string(
    doc: str = "",
    *,
    enum: Iterable[str] | None = None,
    min_len: int | None = None,
    max_len: int | None = None,
    pattern: str | None = None,
    fmt: str | None = None,
    default: str | None = None,
    rules: Iterable[Rule] = (),
) -> Schema:
    schema: Schema = {"type": "string"}
    if enum is not None:
        schema["enum"] = list(enum)
    for key, value in (("minLength", min_len), ("maxLength", max_len), ("pattern", pattern), ("format", fmt)):
        if value is not None:
            schema[key] = value
    return _finish(schema, doc, default, rules)


def integer(
    doc: str = "",
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    default: int | None = None,
    fmt: str = "int32",
    rules: Iterable[Rule] = (),
) -> Schema:
    schema: Schema = {"type": "integer", "format": fmt}
    for key, value in (("minimum", minimum), ("maximum", maximum)):
        if value is not None:
            schema[key] = value
    return _finish(schema, doc, default, rules)


def boolean(doc: str = "", *, default: bool | None = None, rules: Iterable[Rule] = ()) -> Schema:
    return _finish({"type": "boolean"}, doc, default, rules)


def int_or_string(
    doc: str = "",
    *,
    default: int | str | None = None,
    pattern: str | None = None,
    max_len: int | None = None,
    rules: Iterable[Rule] = (),
) -> Schema:
    schema: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if max_len is not None:
        schema["maxLength"] = max_len
    if pattern is not None:
        schema["pattern"] = pattern
    return _finish(schema, doc, default, rules)


def share(doc: str = "", *, default: int, most: int) -> Schema:
    """A number of things or a percentage of them."""
    form = rule(
        f"type(self) == int ? self >= 0 && self <= {most} : self.matches('^[0-9]{{1,3}}%$')",
        f"must be a number from 0 to {most} or a percentage such as 25%",
    )
    return int_or_string(doc, default=default, max_len=16, rules=[form])


def quantity(doc: str = "", *, default: str | None = None, rules: Iterable[Rule] = ()) -> Schema:
    """A Kubernetes quantity such as ``8Gi``."""
    return int_or_string(doc, default=default, pattern=QUANTITY_PATTERN, max_len=32, rules=rules)


def duration(doc: str = "", *, default: str | None = None) -> Schema:
    """A Go duration such as ``1m30s``."""
    longest = rule("duration(self) <= duration('8760h')", "must be at most 8760h, which is a year")
    return string(doc, pattern=DURATION_PATTERN, max_len=64, default=default, rules=[longest])


def time(doc: str = "") -> Schema:
    return string(doc, fmt="date-time")


def array(
    items: Schema,
    doc: str = "",
    *,
    min_items: int | None = None,
    max_items: int | None = None,
    keys: Iterable[str] = (),
    unique: bool = False,
    default: list[Any] | None = None,
    rules: Iterable[Rule] = (),
) -> Schema:
    """A list; ``keys`` makes it a map keyed by these fields, ``unique`` a set, otherwise it is replaced as a whole."""
    schema: Schema = {"type": "array", "items": items}
    for key, value in (("minItems", min_items), ("maxItems", max_items)):
        if value is not None:
            schema[key] = value
    names = list(keys)
    if names:
        schema["x-kubernetes-list-type"] = "map"
        schema["x-kubernetes-list-map-keys"] = names
    else:
        schema["x-kubernetes-list-type"] = "set" if unique else "atomic"
    return _finish(schema, doc, default, rules)


def mapping(
    values: Schema | None = None,
    doc: str = "",
    *,
    max_props: int | None = None,
    default: dict[str, Any] | None = None,
    rules: Iterable[Rule] = (),
) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": values or {"type": "string"}}
    if max_props is not None:
        schema["maxProperties"] = max_props
    return _finish(schema, doc, default, rules)


def obj(
    fields: Mapping[str, Schema],
    doc: str = "",
    *,
    required: Iterable[str] = (),
    default: dict[str, Any] | None = None,
    rules: Iterable[Rule] = (),
    keep_unknown: bool = False,
    atomic: bool = False,
) -> Schema:
    """An object; ``keep_unknown`` preserves fields that are not named here instead of pruning them."""
    schema: Schema = {"type": "object", "properties": dict(fields)}
    names = list(required)
    if names:
        schema["required"] = names
    if keep_unknown:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return _finish(schema, doc, default, rules)


def anything(doc: str = "") -> Schema:
    """An object of a platform or component that is not ours: kept as given."""
    return _finish({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, doc, None, ())


def without_rules(schema: Schema) -> Schema:
    """The same fields and defaults without CEL rules: for projections whose source was already checked."""

    def walk(node: Any, names: bool) -> Any:
        if isinstance(node, list):
            return [walk(item, False) for item in node]
        if not isinstance(node, dict):
            return node
        # Inside "properties" the keys are field names, and a field may be called anything.
        return {
            key: walk(value, key == "properties" and not names)
            for key, value in node.items()
            if names or key != "x-kubernetes-validations"
        }

    found: Schema = walk(schema, False)
    return found
