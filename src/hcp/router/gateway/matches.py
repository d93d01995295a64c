"""What a rule of an HTTPRoute wants of a request, and which of a host's rules comes first. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hcp.router.admission import key_of
from hcp.router.gateway.redirects import Unsupported
from hcp.router.scripted import WORDS, pairs

Object = Mapping[str, Any]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}", re.ASCII)
_VALUE = re.compile(r"[\t -~]*", re.ASCII)
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


def is_header(name: str) -> bool:
    return _TOKEN.fullmatch(name) is not None


def is_value(text: str) -> bool:
    """Whether it can be the value of a header: nothing that would end it."""
    return _VALUE.fullmatch(text) is not None


def place(match: Object) -> dict[str, Any]:
    """Where requests are, as Routes say it, and what else is wanted of them (`when`, empty where nothing is)."""
    path = match.get("path") or {}
    how, value = path.get("type") or "PathPrefix", str(path.get("value") or "/")
    if how not in ("Exact", "PathPrefix"):
        raise Unsupported("matches.path.type is Exact or PathPrefix here")
    return {"path": value, "exactPath": how == "Exact", "when": _when(match)}


def _when(match: Object) -> str:
    method = str(match.get("method") or "")
    if method and method not in _METHODS:
        raise Unsupported("matches.method is one of those that HTTP has")
    headers = {name.lower(): value for name, value in _named(match, "headers", is_header).items()}
    parameters = _named(match, "queryParams", bool)
    words = (method, pairs(headers), pairs(parameters))
    return WORDS.join(words) if any(words) else ""


def _named(match: Object, field: str, good: Callable[[str], bool]) -> dict[str, str]:
    """Of several with one name the first counts."""
    found: dict[str, str] = {}
    for one in match.get(field) or ():
        name, value = str(one.get("name")), str(one.get("value") or "")
        if (one.get("type") or "Exact") != "Exact":
            raise Unsupported(f"matches.{field} are compared as they are: type Exact")
        if not good(name) or not is_value(value):
            raise Unsupported(f"matches.{field} has characters that no request has")
        found.setdefault(name.lower() if field == "headers" else name, value)
    return found


def choose(made: Iterable[dict[str, Any]]) -> None:
    """Say of Routes of a host whose requests are told apart by more than paths which one comes first.

    A list has a name of its own for all that is in it: what is looked up is one list or another, and never half of it.
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in made:
        spec = one["spec"]
        if "when" in spec:
            who: tuple[str, ...] = (one["metadata"].get("namespace", ""), spec["scheme"], *_name(spec))
            groups.setdefault(who, []).append(one)
    for of, every in groups.items():
        if not any(one["spec"]["when"] for one in every):
            continue
        every.sort(key=_place_in_line)
        wanted = [of, [[key_of(one), one["metadata"]["uid"]] for one in every]]
        name = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:32]
        for number, one in enumerate(every):
            one["spec"]["choice"] = {"list": name, "number": number, "of": len(every)}


def _name(spec: Object) -> tuple[str, str]:
    return str(spec.get("host") or "*"), str(spec.get("wildcardPolicy") or "")


def _place_in_line(one: Object) -> tuple[Any, ...]:
    """As the Gateway API has it: the path, the method, how many headers and parameters, age, name, and the order."""
    spec, meta = one["spec"], one["metadata"]
    method, headers, parameters = (spec["when"] or WORDS * 2).split(WORDS)
    counts = [-len([each for each in text.split("&") if each]) for text in (headers, parameters)]
    owner, _, number = str(meta["name"]).rpartition("~")
    path = str(spec["path"])
    created = str(meta.get("creationTimestamp") or "~")
    return not spec["exactPath"], -len(path.rstrip("/")), not method, *counts, created, owner, int(number)
