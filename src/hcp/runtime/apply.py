"""Writing only what changes: a steady fleet costs no writes at all."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from hcp.kube import Client
from hcp.kube.client import MANAGER
from hcp.runtime import compare, metrics
from hcp.runtime.informer import Informer

Object = dict[str, Any]
APPLIED = metrics.Counter("hcp_apply_total", "Wanted objects, by kind and result.", ["kind", "result"])
# About 75 objects of a cluster lie in the management cluster: enough for a few thousand. What is forgotten is compared
# again with every pass, and an object that the server rewrites would be written again.
_MAX_REMEMBERED = 250_000


@dataclass(slots=True)
class _Known:
    """The last time an object was found, or made, as wanted."""

    wanted: bytes  # digest of what we wanted
    version: str  # the live object then: the same version needs no second look
    # Some objects never look as they were sent, because the server rewrites a value: then what came of it.
    outcome: bytes | None = None


_Key = tuple[str, str, str, str, str]
_memory: WeakKeyDictionary[Client, OrderedDict[_Key, _Known]] = WeakKeyDictionary()


async def apply_if_changed(
    client: Client,
    informer: Informer | None,
    obj: Object,
    *,
    manager: str = MANAGER,
    subresource: str | None = None,
) -> Object:
    """Make `obj` true and give back the live object; sends nothing if it already is.

    With an informer of the kind the live object is read from memory, otherwise it is fetched.
    """
    desired = compare.normal(obj)
    live = await _live(client, informer, desired)
    key, wanted = _key(desired, manager, subresource), _digest(desired)
    memory = _memory.setdefault(client, OrderedDict())
    if live is not None and _settled(memory.get(key), wanted, desired, live, manager, subresource):
        APPLIED.inc(kind=key[0], result="unchanged")
        _remember(memory, key, wanted, live)
        return live
    made = await client.apply(desired, manager=manager, subresource=subresource)
    APPLIED.inc(kind=key[0], result="written")
    odd = not compare.is_applied(desired, made, manager, subresource)
    _remember(memory, key, wanted, made, _digest(compare.project(desired, made)) if odd else None)
    if informer is not None:
        informer.observe(made)
    return made


async def _live(client: Client, informer: Informer | None, desired: Object) -> Object | None:
    meta = desired["metadata"]
    name, ns = str(meta["name"]), meta.get("namespace")
    if informer is not None and informer.synced:
        held = informer.get(name, ns)
        if held is not None or informer.covers(desired):
            return held
    return await client.get_or_none(await client.resource_for(desired), name, ns)


def _settled(
    known: _Known | None, wanted: bytes, desired: Object, live: Object, manager: str, subresource: str | None
) -> bool:
    if known is not None and known.wanted == wanted:
        if known.version == _version(live):
            return True
        if known.outcome is not None and known.outcome == _digest(compare.project(desired, live)):
            return True
    return compare.is_applied(desired, live, manager, subresource)


def _remember(
    memory: OrderedDict[_Key, _Known], key: _Key, wanted: bytes, live: Object, outcome: bytes | None = None
) -> None:
    known = memory.get(key)
    if known is not None and known.wanted == wanted and outcome is None:
        known.version = _version(live)
        return
    memory[key] = _Known(wanted, _version(live), outcome)
    memory.move_to_end(key)
    while len(memory) > _MAX_REMEMBERED:
        memory.popitem(last=False)


def _key(desired: Object, manager: str, subresource: str | None) -> _Key:
    meta = desired["metadata"]
    kind = str(desired.get("kind"))
    place = f"{desired.get('apiVersion')} {meta.get('namespace') or ''}"
    return kind, place, str(meta["name"]), manager, subresource or ""


def _version(live: Object) -> str:
    meta = live.get("metadata") or {}
    return f"{meta.get('uid')}/{meta.get('resourceVersion')}"


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), default=str).encode()).digest()
