"""The Ignition document inside a MachineConfig: is it one that a node can take, and what of it has no effect.

A mistake that Ignition would find is found here, where its author sees it in a condition: on a machine it would be a
first boot that never ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hcp.errors import HcpError

_UNIT = re.compile(
    r"[A-Za-z0-9:_.\\@-]{1,240}\.(service|socket|timer|target|path|mount|automount|swap|slice|scope|device)"
)
_DROPIN = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.conf")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?")
# What Ignition on a node's disk fetches. Stores of clouds (s3, arn, gs) are not in its build (docs/payload.md).
_SOURCES = ("data", "https", "http", "tftp")
# Known to Ignition, and not done on nodes: their disk is partitioned and formatted, and its first boot runs the stages
# that fetch and write.
_WITHOUT_EFFECT = (
    "storage.disks",
    "storage.filesystems",
    "storage.raid",
    "storage.luks",
    "ignition.config",
    "ignition.proxy",
    "ignition.timeouts",
    "kernelArguments.shouldNotExist",
)


def check_document(config: Mapping[str, Any], origin: str) -> None:
    """Refuses what Ignition or systemd would refuse, by name."""
    storage, systemd, passwd = (config.get(part) or {} for part in ("storage", "systemd", "passwd"))
    for kind in ("files", "directories", "links"):
        for entry in storage.get(kind) or []:
            path = entry["path"]
            if not isinstance(path, str) or not path.startswith("/") or "\0" in path or "\n" in path:
                raise HcpError(f"{origin} has storage.{kind} with the path {path!a}, which is not an absolute one")
            mode = entry.get("mode")
            if mode is not None and (not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o7777):
                raise HcpError(
                    f"{origin} has {path} with mode {mode!r}", hint="Ignition takes a decimal number: 420 is 0644."
                )
            if kind == "files":
                _sources(entry, f"{origin} has {path}")
    for entry in systemd.get("units") or []:
        _unit(entry, origin)
    for kind in ("users", "groups"):
        for entry in passwd.get(kind) or []:
            if not _ACCOUNT.fullmatch(str(entry["name"])):
                raise HcpError(f"{origin} has passwd.{kind} with the name {str(entry['name'])[:80]!a}")


def _sources(entry: Mapping[str, Any], origin: str) -> None:
    for content in (entry.get("contents") or {}, *(entry.get("append") or [])):
        source = content.get("source")
        if source and str(source).partition(":")[0].lower() not in _SOURCES:
            raise HcpError(
                f"{origin} with the source {str(source)[:80]!a}, which nodes do not fetch",
                hint=f"Sources begin with {', '.join(f'{scheme}:' for scheme in _SOURCES)}.",
            )


def _unit(entry: Mapping[str, Any], origin: str) -> None:
    name = str(entry["name"])
    if not _UNIT.fullmatch(name):
        raise HcpError(
            f"{origin} has a unit with the name {name[:80]!a}", hint="It ends in .service, .timer or the like."
        )
    for field, kind in (("contents", str), ("enabled", bool), ("mask", bool)):
        if entry.get(field) is not None and not isinstance(entry[field], kind):
            raise HcpError(f"{origin} has unit {name} whose {field} is {str(entry[field])[:80]!a}")
    for dropin in entry.get("dropins") or []:
        if not _DROPIN.fullmatch(str(dropin["name"])):
            named = str(dropin["name"])[:80]
            raise HcpError(f"{origin} has unit {name} with the drop-in {named!a}", hint="It ends in .conf.")


def without_effect(config: Mapping[str, Any]) -> list[str]:
    """Parts of a document that nodes do not follow."""
    found = []
    for path in _WITHOUT_EFFECT:
        section, _, name = path.partition(".")
        if (config.get(section) or {}).get(name):
            found.append(f"config.{path}")
    return found
