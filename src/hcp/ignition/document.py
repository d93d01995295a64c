"""Ignition documents as plain dicts: making parts and joining them.

Only what the node's real Ignition understands (specification 3.2) is produced. Parts are joined by key (a file by its
path, a unit by its name, a user by its name) and a later part wins, so that user configuration overrides ours.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from hcp.api.paths import at
from hcp.errors import HcpError

SPEC_VERSION = "3.2.0"
Document = dict[str, Any]


def data_url(content: str | bytes) -> str:
    """The content as a ``data:`` URL; text stays readable, anything else becomes base64."""
    if isinstance(content, str):
        return f"data:,{quote(content, safe='/:=&;,@+*()!$~')}"
    return f"data:;base64,{base64.b64encode(content).decode()}"


def read_data_url(source: str) -> bytes:
    """The bytes inside a ``data:`` URL."""
    head, comma, body = source.partition(",")
    if not head.startswith("data:") or not comma:
        raise HcpError("a file source of the node document is not a data URL", cause=source[:60])
    if head.endswith(";base64"):
        return base64.b64decode(unquote_to_bytes(body))
    return unquote_to_bytes(body)


def file(path: str, content: str | bytes, mode: int = 0o644) -> Document:
    """One file of the node, replacing what the disk carries at that path."""
    return {"path": path, "overwrite": True, "mode": mode, "contents": {"source": data_url(content)}}


def unit(name: str, contents: str, *, enabled: bool = True) -> Document:
    """One systemd unit."""
    return {"name": name, "enabled": enabled, "contents": contents}


def document(
    files: Iterable[Document] = (), units: Iterable[Document] = (), users: Iterable[Document] = ()
) -> Document:
    """A whole document made of files, units and users."""
    return {
        "ignition": {"version": SPEC_VERSION},
        "storage": {"files": list(files)},
        "systemd": {"units": list(units)},
        "passwd": {"users": list(users)},
    }


_LISTS = (
    ("storage", "files", "path"),
    ("storage", "directories", "path"),
    ("storage", "links", "path"),
    ("storage", "disks", "device"),
    ("storage", "filesystems", "device"),
    ("storage", "raid", "name"),
    ("storage", "luks", "name"),
    ("systemd", "units", "name"),
    ("passwd", "users", "name"),
    ("passwd", "groups", "name"),
)


def merge(parts: Iterable[Document]) -> Document:
    """All parts as one document, sorted by key so that the result depends only on the content."""
    tables: dict[tuple[str, str], dict[str, Document]] = {}
    authorities: list[Document] = []
    for part in parts:
        for section, name, key in _LISTS:
            for entry in (part.get(section) or {}).get(name) or []:
                table = tables.setdefault((section, name), {})
                known = table.get(entry[key])
                table[entry[key]] = entry if known is None else _join(known, entry)
        tls = at(part, "ignition.security.tls") or {}
        authorities += [entry for entry in tls.get("certificateAuthorities") or [] if entry not in authorities]
    result: Document = {"ignition": {"version": SPEC_VERSION}}
    if authorities:
        result["ignition"]["security"] = {"tls": {"certificateAuthorities": authorities}}
    for (section, name), table in sorted(tables.items()):
        result.setdefault(section, {})[name] = [table[key] for key in sorted(table)]
    return result


def _join(old: Document, new: Document) -> Document:
    """Two entries of one key: fields of the new one win, drop-ins and SSH keys add up."""
    joined = {**old, **new}
    if old.get("dropins") or new.get("dropins"):
        dropins = {entry["name"]: entry for entry in [*(old.get("dropins") or []), *(new.get("dropins") or [])]}
        joined["dropins"] = [dropins[name] for name in sorted(dropins)]
    if old.get("sshAuthorizedKeys") or new.get("sshAuthorizedKeys"):
        keys = [*(old.get("sshAuthorizedKeys") or []), *(new.get("sshAuthorizedKeys") or [])]
        joined["sshAuthorizedKeys"] = list(dict.fromkeys(keys))
    return joined
