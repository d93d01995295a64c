"""How hosts, subdomains and paths of Routes may be spelled.

The same expressions stand in the definition of Route and are asked again here: on a cluster whose Route kind is not
ours, nobody else would. What passes contains nothing that means something to HAProxy: no space, no line end, no `#`.
"""

from __future__ import annotations

import re
from typing import Any

MAX_HOST = 253
MAX_LABEL = 63
MAX_PATH = 1024
# Shown of a value that is refused: a status is no place for a megabyte.
SHOWN = 100

_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_NAME = rf"{_LABEL}(\.{_LABEL})*"
# Characters of paths as the standard for URLs has them; anything else is percent-encoded by clients too.
_PATH = r"/[-A-Za-z0-9._~!$&'()*+,;=:@%/]*"
HOST_PATTERN = rf"^({_NAME})?$"
SUBDOMAIN_PATTERN = HOST_PATTERN
PATH_PATTERN = rf"^({_PATH})?$"


def shown(value: Any) -> str:
    """A value of somebody else as it may stand in a message."""
    text = ascii(str(value))
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…'"


def is_host(text: str) -> bool:
    return len(text) <= MAX_HOST and re.fullmatch(_NAME, text, re.ASCII) is not None


def problem(spec: dict[str, Any], host: str) -> str | None:
    """What is wrong with the spelling of a Route's host, subdomain or path; None when it can be served."""
    for field in ("host", "subdomain"):
        value = spec.get(field)
        if value and not (isinstance(value, str) and is_host(value)):
            return f"spec.{field} {shown(value)} is not a DNS name: labels of letters, digits and -, joined by dots."
    path = spec.get("path")
    if path:
        if not isinstance(path, str) or re.fullmatch(_PATH, path, re.ASCII) is None:
            return f"spec.path {shown(path)} is not a path: it begins with / and has no spaces or special characters."
        if len(path) > MAX_PATH:
            return f"spec.path has {len(path)} characters, {MAX_PATH} are permitted."
    # `*` is no name that anybody can write: it stands for an Ingress that names no host.
    return None if is_host(host) or host == "*" else f"{shown(host)} is not a usable DNS name."
