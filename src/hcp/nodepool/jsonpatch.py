"""JSON patches (RFC 6902) on plain Python data, as the VM template annotation uses them.

One liberty is taken, as users of that annotation expect: ``add`` makes missing parent objects.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hcp.errors import HcpError

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
# A patch comes from a stranger, and "copy" can double what there is with every operation.
MAX_OPERATIONS, MAX_DEPTH, MAX_SIZE = 256, 32, 256 * 1024


def parse_patch(text: str) -> list[dict[str, Any]]:
    """Read and check a patch written as JSON."""
    try:
        patch = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HcpError("the JSON patch is not valid JSON", cause=str(error)[:300]) from error
    if not isinstance(patch, list):
        raise HcpError("the JSON patch is not a list of operations")
    if len(patch) > MAX_OPERATIONS:
        raise HcpError(f"the JSON patch has {len(patch)} operations, {MAX_OPERATIONS} are the most")
    bounded(patch)
    for number, operation in enumerate(patch):
        if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
            raise HcpError(f"operation {number} of the JSON patch has no known 'op'", hint=f"use {list(_OPERATIONS)}")
        if not isinstance(operation.get("path"), str):
            raise HcpError(f"operation {number} of the JSON patch has no 'path'")
        if operation["op"] in ("add", "replace", "test") and "value" not in operation:
            raise HcpError(f"operation {number} of the JSON patch has no 'value'")
        if operation["op"] in ("move", "copy") and not isinstance(operation.get("from"), str):
            raise HcpError(f"operation {number} of the JSON patch has no 'from'")
    return patch


def apply_patch(document: Any, patch: list[dict[str, Any]]) -> Any:
    """The patched copy of ``document``; the original stays as it is."""
    result = copy.deepcopy(document)
    for number, operation in enumerate(patch):
        try:
            result = _apply(result, operation)
            bounded(result)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            what = f"{operation['op']} {operation['path'][:200]}"
            raise HcpError(f"operation {number} of the JSON patch cannot be done ({what})", cause=str(error)) from error
    return result


def bounded(value: Any) -> None:
    """Raise when something is nested too deep or has grown too large to be a machine."""
    size = 0
    left: list[tuple[Any, int]] = [(value, 0)]
    while left:
        found, depth = left.pop()
        if isinstance(found, dict):
            size += 2 + sum(len(key) + 4 for key in found)
            left += [(inner, depth + 1) for inner in found.values()]
        elif isinstance(found, list):
            size += 2 + len(found)
            left += [(inner, depth + 1) for inner in found]
        else:
            size += len(found) if isinstance(found, str) else 8
        if depth > MAX_DEPTH:
            raise HcpError(f"the JSON patch nests values deeper than {MAX_DEPTH} levels")
        if size > MAX_SIZE:
            raise HcpError(f"the JSON patch makes a machine larger than {MAX_SIZE // 1024} KiB of text")


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation["op"], operation["path"]
    if name == "add":
        return _set(document, path, copy.deepcopy(operation["value"]), make=True)
    if name == "replace":
        _get(document, path)
        return _set(_remove(document, path), path, copy.deepcopy(operation["value"]))
    if name == "remove":
        return _remove(document, path)
    if name == "test":
        if _get(document, path) != operation["value"]:
            raise ValueError("the value differs")
        return document
    value = copy.deepcopy(_get(document, operation["from"]))
    if name == "move":
        document = _remove(document, operation["from"])
    return _set(document, path, value)


def _parts(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise ValueError("a path begins with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _index(part: str, length: int, *, append: bool) -> int:
    if part == "-" and append:
        return length
    if not part.isdigit() or (len(part) > 1 and part[0] == "0"):
        raise ValueError(f"{part!r} is not a list index")
    number = int(part)
    if number > length - (0 if append else 1):
        raise IndexError(f"the list has {length} elements, index {number} is outside")
    return number


def _step(value: Any, part: str) -> Any:
    if isinstance(value, list):
        return value[_index(part, len(value), append=False)]
    if isinstance(value, dict):
        if part not in value:
            raise KeyError(f"{part} does not exist")
        return value[part]
    raise TypeError(f"{part} is looked for in something that is neither an object nor a list")


def _get(document: Any, path: str) -> Any:
    for part in _parts(path):
        document = _step(document, part)
    return document


def _set(document: Any, path: str, value: Any, *, make: bool = False) -> Any:
    parts = _parts(path)
    if not parts:
        return value
    parent = document
    for part in parts[:-1]:
        if make and isinstance(parent, dict) and parent.get(part) is None:
            parent[part] = {}
        parent = _step(parent, part)
    if isinstance(parent, list):
        parent.insert(_index(parts[-1], len(parent), append=True), value)
    elif isinstance(parent, dict):
        parent[parts[-1]] = value
    else:
        raise TypeError("the parent is neither an object nor a list")
    return document


def _remove(document: Any, path: str) -> Any:
    parts = _parts(path)
    if not parts:
        return None
    parent = document
    for part in parts[:-1]:
        parent = _step(parent, part)
    _step(parent, parts[-1])
    if isinstance(parent, list):
        del parent[int(parts[-1])]
    else:
        del parent[parts[-1]]
    return document
