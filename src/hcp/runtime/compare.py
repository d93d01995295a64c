"""Whether an object already is what we want, read from what the server says we own.

The server records in managedFields which fields we applied last. If that set is exactly the fields we want now, and
their values in the live object are the wanted ones, then applying again would change nothing and is not sent. Lists
need no knowledge of types: the record says which are keyed, which are sets, and which are one value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from hcp.runtime import quantity

Object = dict[str, Any]
_NOT_OWNED_TOP = frozenset({"apiVersion", "kind"})
_NOT_OWNED_META = frozenset(
    {
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
    }
)
# Under these keys, and for these keys, values are amounts that the server may spell in another way.
_AMOUNTS = frozenset(
    {"requests", "limits", "capacity", "hard", "overhead", "default", "defaultRequest", "max", "min", "allocatable"}
)
_AMOUNT = frozenset({"sizeLimit", "divisor", "storage", "memory", "cpu", "guest", "size"})


def normal(obj: Mapping[str, Any]) -> Object:
    """The manifest as it is sent: a Secret's stringData becomes data, which is what the server keeps."""
    result = dict(obj)
    texts = result.pop("stringData", None) if obj.get("kind") == "Secret" else None
    if texts:
        encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in texts.items()}
        result["data"] = {**(result.get("data") or {}), **encoded}
    return result


def is_applied(desired: Mapping[str, Any], live: Mapping[str, Any], manager: str, subresource: str | None) -> bool:
    """Whether applying `desired` as `manager` would leave `live` as it is."""
    owned = _owned_fields(live, manager, subresource)
    if owned is None:
        return False
    # A kind without the subresource keeps its status as it keeps everything else.
    with_status = subresource is not None or "f:status" in owned
    return _same(_content(desired, with_status), live, owned, "", False)


def project(desired: Any, live: Any) -> Any:
    """The part of `live` that `desired` speaks about."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return {k: project(v, live.get(k)) for k, v in desired.items()}
    if isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        return [project(d, v) for d, v in zip(desired, live, strict=True)]
    return live


def _owned_fields(live: Mapping[str, Any], manager: str, subresource: str | None) -> Mapping[str, Any] | None:
    for entry in (live.get("metadata") or {}).get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == (subresource or "")
        ):
            fields = entry.get("fieldsV1")
            if isinstance(fields, str):  # as a cache keeps it
                fields = json.loads(fields)
            return fields if isinstance(fields, Mapping) else None
    return None


def _content(desired: Mapping[str, Any], with_status: bool) -> Object:
    """What the server can own of a manifest: not the identity, and mostly not the status."""
    dropped = _NOT_OWNED_TOP if with_status else _NOT_OWNED_TOP | {"status"}
    content = {k: v for k, v in desired.items() if k not in dropped}
    meta = {k: v for k, v in (content.pop("metadata", None) or {}).items() if k not in _NOT_OWNED_META}
    if meta:
        content["metadata"] = meta
    return content


def _same(desired: Any, live: Any, owned: Mapping[str, Any], key: str, amounts: bool) -> bool:
    if not owned:
        return _covers(desired, live, key, amounts)
    if isinstance(desired, dict):
        return isinstance(live, dict) and _same_map(desired, live, owned, key, amounts)
    if isinstance(desired, list):
        return isinstance(live, list) and _same_list(desired, live, owned)
    return _equal(desired, live, key, amounts)


def _same_map(
    desired: Mapping[str, Any], live: Mapping[str, Any], owned: Mapping[str, Any], key: str, amounts: bool
) -> bool:
    below = amounts or key in _AMOUNTS
    for name, value in desired.items():
        mark = owned.get(f"f:{name}")
        if mark is None:
            if _empty(value) and _empty(live.get(name)):
                continue
            return False
        if not _same(value, live.get(name), mark, name, below):
            return False
    return all(mark[2:] in desired for mark in owned if mark.startswith("f:"))


def _same_list(desired: list[Any], live: list[Any], owned: Mapping[str, Any]) -> bool:
    marks = [m for m in owned if m != "."]
    if len(marks) != len(desired):
        return False
    wanted_index = have_index = _Index([])
    for mark in marks:
        value = _value_of(mark)
        if mark.startswith("k:"):
            if wanted_index.names != value.keys():
                wanted_index, have_index = _Index(desired, value.keys()), _Index(live, value.keys())
            wanted, have = wanted_index.find(value) or _find(desired, value), have_index.find(value)
            if wanted is None or have is None or not _same(wanted, have, owned[mark], "", False):
                return False
        elif not mark.startswith("v:") or value not in desired or value not in live:
            return False
    return True


class _Index:
    """Items of a keyed list by their keys."""

    def __init__(self, items: list[Any], names: Iterable[str] = ()) -> None:
        self.names = set(names)
        self._order = sorted(self.names)
        self._items = {tuple(i.get(n) for n in self._order): i for i in items if isinstance(i, dict)}

    def find(self, keys: Mapping[str, Any]) -> Any:
        return self._items.get(tuple(keys[n] for n in self._order))


@lru_cache(maxsize=8192)
def _value_of(mark: str) -> Any:
    """The keys or the value in a mark of a list item; the same few marks come again and again."""
    return json.loads(mark[2:])


def _find(items: list[Any], keys: Mapping[str, Any]) -> Any:
    """A wanted item that leaves out a key which has a default."""
    for item in items:
        if isinstance(item, dict) and all(item.get(k) in (None, v) for k, v in keys.items()):
            return item
    return None


def _covers(desired: Any, live: Any, key: str, amounts: bool) -> bool:
    """Whether a value owned as a whole is there; the server may have added defaults inside."""
    if isinstance(desired, dict):
        if not isinstance(live, dict):
            return _empty(desired) and _empty(live)
        below = amounts or key in _AMOUNTS
        return all(_covers(v, live.get(k), k, below) for k, v in desired.items())
    if isinstance(desired, list):
        if not isinstance(live, list):
            return _empty(desired) and _empty(live)
        return len(desired) == len(live) and all(
            _covers(d, v, key, amounts) for d, v in zip(desired, live, strict=True)
        )
    return _equal(desired, live, key, amounts)


def _equal(desired: Any, live: Any, key: str, amounts: bool) -> bool:
    if desired == live or (_empty(desired) and _empty(live)):
        return True
    if amounts or key in _AMOUNT:
        return quantity.equal(desired, live)
    return False


def _empty(value: Any) -> bool:
    """Values that the server may leave out when it stores an object."""
    return not value
