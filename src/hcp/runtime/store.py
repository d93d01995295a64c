"""Objects in memory, by key and by index."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

Object = dict[str, Any]
Objects = list[dict[str, Any]]
Keys = list[str]
# Of a string that is shared, in characters: records of applied fields are long, and the same for every cluster.
_SHARED_AT_MOST = 16_384
# Python 3.12 before 3.12.7 never frees a string that is shared this way: there every object keeps its own, or each new
# version of an object would stay in memory for ever. A string that is never freed counts billions of references.
_FREED = sys.getrefcount(sys.intern("".join(("a string of ", __name__)))) < 1_000_000
Change = tuple[Object | None, Object | None]
Changes = list[Change]


def key_of(obj: Object) -> str:
    """The queue key of an object: `ns/name`, or `name` where there is no namespace."""
    meta = obj.get("metadata") or {}
    ns, name = meta.get("namespace"), meta.get("name", "")
    return f"{ns}/{name}" if ns else str(name)


def slim(obj: Object) -> Object:
    """Keep of the bookkeeping only what `compare` reads, the applied fields, and that as text.

    As dictionaries it is often half of an object's memory, and an object that did not change is not compared again.
    """
    meta = obj.get("metadata")
    if meta and "managedFields" in meta:
        applied = [_as_text(m) for m in meta["managedFields"] if m.get("operation") == "Apply"]
        if applied:
            meta["managedFields"] = applied
        else:
            del meta["managedFields"]
    return obj


def shared(value: Any) -> Any:
    """The same value out of strings that all objects in memory share.

    Those of one cluster mostly say what those of every other cluster say; each answer of a server brings them anew.
    """
    if not _FREED:
        return value
    if isinstance(value, dict):
        return {sys.intern(key): shared(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shared(inner) for inner in value]
    # Exactly a string: others cannot be shared. Documents are nobody else's.
    return sys.intern(value) if type(value) is str and len(value) <= _SHARED_AT_MOST else value


def _as_text(entry: Object) -> Object:
    fields = entry.get("fieldsV1")
    return {**entry, "fieldsV1": json.dumps(fields, separators=(",", ":"))} if isinstance(fields, dict) else entry


class Store:
    """A dictionary of objects that keeps indexes true and knows which of two versions is newer."""

    def __init__(self, transform: Callable[[Object], Object] | None = None) -> None:
        self._transform = transform
        self._objects: dict[str, Object] = {}
        self._namespaces: dict[str, dict[str, Object]] = {}
        self._functions: dict[str, Callable[[Object], Iterable[str]]] = {}
        self._indexes: dict[str, dict[str, dict[str, Object]]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> Object | None:
        return self._objects.get(key)

    def keys(self) -> Keys:
        return list(self._objects)

    def list(self, ns: str | None) -> Objects:
        chosen = self._objects if ns is None else self._namespaces.get(ns, {})
        return list(chosen.values())

    def add_index(self, name: str, fn: Callable[[Object], Iterable[str]]) -> None:
        if name in self._functions:
            return
        self._functions[name] = fn
        index = self._indexes[name] = {}
        for key, obj in self._objects.items():
            for value in fn(obj):
                index.setdefault(value, {})[key] = obj

    def by_index(self, name: str, value: str) -> Objects:
        return list(self._indexes[name].get(value, {}).values())

    def is_newer(self, obj: Object) -> bool:
        """Whether `obj` is not what we already have, nor older."""
        have = self._objects.get(key_of(obj))
        if have is None:
            return True
        ours, theirs = version_of(have), version_of(obj)
        return theirs > ours or (theirs == 0 and have != obj)

    def kept(self, obj: Object) -> Object:
        """Of an object, what is kept in memory."""
        kept: Object = shared(slim(obj if self._transform is None else self._transform(obj)))
        return kept

    def put(self, obj: Object) -> Change:
        key = str(shared(key_of(obj)))
        obj = self.kept(obj)
        old = self._objects.get(key)
        if old is not None:
            self._unindex(key, old)
        self._objects[key] = obj
        ns = (obj.get("metadata") or {}).get("namespace")
        if ns:
            self._namespaces.setdefault(ns, {})[key] = obj
        for name, fn in self._functions.items():
            for value in fn(obj):
                self._indexes[name].setdefault(value, {})[key] = obj
        return old, obj

    def remove(self, key: str) -> Object | None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
            ns = (old.get("metadata") or {}).get("namespace")
            if ns and key in self._namespaces.get(ns, {}):
                del self._namespaces[ns][key]
                if not self._namespaces[ns]:
                    del self._namespaces[ns]
        return old

    def replace(self, items: Iterable[Object]) -> Changes:
        """Become exactly these objects; what changed against before, deletions first."""
        fresh = {key_of(obj): obj for obj in items}
        changes: Changes = [(self.remove(key), None) for key in self.keys() if key not in fresh]
        for key, obj in fresh.items():
            have = self._objects.get(key)
            if have is None or version_of(have) != version_of(obj):
                changes.append(self.put(obj))
        return changes

    def _unindex(self, key: str, obj: Object) -> None:
        for name, fn in self._functions.items():
            index = self._indexes[name]
            for value in fn(obj):
                bucket = index.get(value)
                if bucket is not None:
                    bucket.pop(key, None)
                    if not bucket:
                        del index[value]


def version_of(obj: Object) -> int:
    """Kubernetes lets versions of one kind be compared as numbers since 1.35; real servers always did."""
    version = str((obj.get("metadata") or {}).get("resourceVersion") or "")
    return int(version) if version.isdigit() else 0
