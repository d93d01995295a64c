"""Writing only what changes: a steady fleet costs no writes at all."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

from hcp.kube import Client
from hcp.kube.client import MANAGER
from hcp.runtime import compare, metrics
from hcp.runtime.informer import Informer

Object = dict[str, Any]
APPLIED = metrics.Counter("hcp_apply_total", "Wanted objects, by kind and result.", ["kind", "result"])
_MAX_REMEMBERED = 20_000

# Some objects never look as they were sent: a field the server prunes, a value it rewrites. For those we remember
# what we sent and what came of it, and write again only when one of the two is different.
_Key = tuple[str, str, str, str, str]
_odd: WeakKeyDictionary[Client, OrderedDict[_Key, tuple[str, str]]] = WeakKeyDictionary()


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
    if live is not None and _settled(client, desired, live, manager, subresource):
        APPLIED.inc(kind=str(obj.get("kind")), result="unchanged")
        return live
    made = await client.apply(desired, manager=manager, subresource=subresource)
    APPLIED.inc(kind=str(obj.get("kind")), result="written")
    if not compare.is_applied(desired, made, manager, subresource):
        _remember(client, desired, made, manager, subresource)
    if informer is not None:
        informer.observe(made)
    return made


async def _live(client: Client, informer: Informer | None, desired: Object) -> Object | None:
    meta = desired["metadata"]
    name, ns = str(meta["name"]), meta.get("namespace")
    if informer is not None and informer.synced:
        held = informer.get(name, ns)
        if held is not None or informer.covers(ns):
            return held
    return await client.get_or_none(await client.resource_for(desired), name, ns)


def _settled(client: Client, desired: Object, live: Object, manager: str, subresource: str | None) -> bool:
    if compare.is_applied(desired, live, manager, subresource):
        return True
    known = _odd.get(client)
    if known is None:
        return False
    remembered = known.get(_key(desired, manager, subresource))
    return remembered is not None and remembered == (_digest(desired), _seen(desired, live))


def _remember(client: Client, desired: Object, made: Object, manager: str, subresource: str | None) -> None:
    known = _odd.setdefault(client, OrderedDict())
    known[_key(desired, manager, subresource)] = (_digest(desired), _seen(desired, made))
    while len(known) > _MAX_REMEMBERED:
        known.popitem(last=False)


def _key(desired: Object, manager: str, subresource: str | None) -> _Key:
    meta = desired["metadata"]
    kind = f"{desired.get('apiVersion')}/{desired.get('kind')}"
    return kind, str(meta.get("namespace") or ""), str(meta["name"]), manager, subresource or ""


def _seen(desired: Object, live: Object) -> str:
    uid = (live.get("metadata") or {}).get("uid", "")
    return f"{uid}/{_digest(compare.project(desired, live))}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()
