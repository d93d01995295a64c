"""Where a redirect leads, as HAProxy looks it up: words of a row, each checked before. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.paths import at
from hcp.router import hosts
from hcp.router.maps import GOTO, GOTO_CODES
from hcp.router.options import MAX_ELEMENTS

Object = Mapping[str, Any]
_PORTS = {"http": 80, "https": 443}
# Stands where nothing is asked for: it is as in the request.
SAME = "*"
# As many elements of the path go away as there can be: all of them.
WHOLE = "all"


class Unsupported(ValueError):
    """Something that this router cannot do, in a sentence."""


def row(given: Object, listener: str, prefix: str | None) -> str:
    """`listener`: the scheme of who is asked; `prefix`: the path that is matched by its beginning, if it is."""
    scheme = str(given.get("scheme") or listener)
    if scheme not in _PORTS:
        raise Unsupported("a redirect leads to http or https")
    code = int(given.get("statusCode") or 302)
    if code not in GOTO_CODES:
        raise Unsupported(f"a redirect has one of the codes {', '.join(map(str, GOTO_CODES))}")
    host = str(given.get("hostname") or "").lower()
    if host and not hosts.is_host(host):
        raise Unsupported("the host of a redirect is a DNS name")
    port = int(given.get("port") or _PORTS[scheme])
    path, strip = _path(given.get("path") or {}, prefix)
    words = (scheme, host or SAME, SAME if port == _PORTS[scheme] else f":{port}", path, strip)
    return GOTO.join(("goto", str(code), *words))


def _path(given: Object, prefix: str | None) -> tuple[str, str]:
    """What the path begins with instead (after `=`), and how many elements that stands for."""
    match given.get("type"):
        case None:
            return SAME, SAME
        case "ReplaceFullPath":
            return f"={_word(given.get('replaceFullPath'))}", WHOLE
        case "ReplacePrefixMatch" if prefix is not None:
            count = len([one for one in prefix.split("/") if one])
            if count > MAX_ELEMENTS:
                raise Unsupported(f"a prefix that is replaced has at most {MAX_ELEMENTS} elements")
            return f"={_word(given.get('replacePrefixMatch')).rstrip('/')}", str(count)
    raise Unsupported("the path of a redirect is replaced as a whole, or by the prefix that is matched")


def _word(value: Any) -> str:
    path = str(value or "/")
    if hosts.problem({"path": path}, "*") is not None:
        raise Unsupported(f"the path {hosts.shown(path)} has characters that no URL has")
    return path


def of_rule(rule: Object) -> Object | None:
    """The redirect that a rule asks for."""
    found = [one for one in rule.get("filters") or () if one.get("type") == "RequestRedirect"]
    return at(found[0], "requestRedirect") or {} if found else None
