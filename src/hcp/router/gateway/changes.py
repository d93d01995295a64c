"""Headers that a rule of an HTTPRoute changes, and what else its filters put in place of what was asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import at
from hcp.router import hosts
from hcp.router.gateway.matches import is_header, is_value
from hcp.router.gateway.redirects import Unsupported
from hcp.router.scripted import PARTS, encoded

Object = Mapping[str, Any]
_SIDES = {
    "RequestHeaderModifier": ("q", "requestHeaderModifier"),
    "ResponseHeaderModifier": ("p", "responseHeaderModifier"),
}
# What says where a message ends, and whose connection it is: nobody changes these.
FRAMING = frozenset(
    (
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)


def of_rule(rule: Object) -> str:
    """As the script looks it up; empty where nothing is changed."""
    found: list[str] = []
    for one in rule.get("filters") or ():
        kind = str(one.get("type"))
        if kind in _SIDES:
            side, field = _SIDES[kind]
            found += _headers(side, one.get(field) or {})
        elif kind == "URLRewrite":
            found += _rewrite(one.get("urlRewrite") or {})
        elif kind != "RequestRedirect":
            raise Unsupported(f"the filter {kind} is not served")
    return PARTS.join(found)


def _headers(side: str, given: Object) -> Iterable[str]:
    for what, letter in (("set", "s"), ("add", "a")):
        for one in given.get(what) or ():
            yield f"{side}{letter}:{_header(one.get('name'))}={_value(one.get('value'))}"
    for name in given.get("remove") or ():
        yield f"{side}d:{_header(name)}="


def _header(name: Any) -> str:
    text = str(name).lower()
    if not is_header(text):
        raise Unsupported(f"{hosts.shown(name)} is no name of a header")
    if text in FRAMING:
        raise Unsupported(f"the header {text} belongs to the connection, and stays as it is")
    return encoded(text)


def _value(value: Any) -> str:
    if not is_value(str(value)):
        raise Unsupported("a header's value has characters that none has")
    return encoded(str(value))


def _rewrite(given: Object) -> Iterable[str]:
    """The host, and the whole path; a prefix is replaced as Routes do it."""
    if host := str(given.get("hostname") or "").lower():
        if not hosts.is_host(host):
            raise Unsupported("a host that is written in place of another is a DNS name")
        yield f"qs:host={encoded(host)}"
    how = at(given, "path.type")
    if how == "ReplaceFullPath":
        path = str(at(given, "path.replaceFullPath") or "/")
        if hosts.problem({"path": path}, "*") is not None:
            raise Unsupported(f"the path {hosts.shown(path)} has characters that no URL has")
        yield f"qp:={encoded(path)}"
    elif how not in (None, "ReplacePrefixMatch"):
        raise Unsupported("a path is replaced as a whole, or by the prefix that is matched")
