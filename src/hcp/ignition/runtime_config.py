"""ContainerRuntimeConfig, written for CRI-O, as far as containerd and the kubelet have the same setting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.ignition.document import Document, document, file

CONFIG = "/etc/containerd/conf.d/30-runtime.toml"
LEVELS = ("trace", "debug", "info", "warn", "error", "fatal", "panic")
_SIZE = re.compile(r"[1-9][0-9]{0,15}([KMGT]i?|k)?")
_WHY = {
    "overlaySize": "containerd bounds no container's own layer; use ephemeral-storage limits of pods",
    "defaultRuntime": "the node disk has runc only",
}


@dataclass
class Runtime:
    """What was asked for: settings of the kubelet, and containerd's words."""

    kubelet: dict[str, Any] = field(default_factory=dict)
    log_level: str = ""


def runtime_settings(spec: Mapping[str, Any]) -> Runtime:
    """Every field is followed or refused by name."""
    asked = {key: value for key, value in spec.items() if value is not None}
    found = Runtime()
    pids = asked.pop("pidsLimit", None)
    if pids is not None:
        if not isinstance(pids, int) or isinstance(pids, bool) or (pids < 1 and pids != -1) or pids > 4_194_304:
            raise HcpError(f"a ContainerRuntimeConfig sets pidsLimit to {pids!r}, which is no number of processes")
        found.kubelet["podPidsLimit"] = pids
    size = asked.pop("logSizeMax", None)
    if size is not None:
        if not _SIZE.fullmatch(str(size)):
            raise HcpError(f"a ContainerRuntimeConfig sets logSizeMax to {size!r}, which is no size of a file")
        found.kubelet["containerLogMaxSize"] = size
    level = asked.pop("logLevel", None) or ""
    if level and level not in LEVELS:
        raise HcpError(f"a ContainerRuntimeConfig sets logLevel to {level!r}", hint=f"use {', '.join(LEVELS)}")
    found.log_level = level
    if asked.get("defaultRuntime") in ("runc", ""):
        del asked["defaultRuntime"]
    if asked:
        named = "; ".join(f"{key} ({_WHY[key]})" if key in _WHY else str(key) for key in sorted(asked))
        raise HcpError(f"a ContainerRuntimeConfig sets {named}, which containerd nodes cannot follow")
    return found


def runtime_document(log_level: str) -> Document:
    """containerd's part; nothing where nothing was asked for."""
    if not log_level:
        return document()
    return document(files=[file(CONFIG, f"version = 3\n\n[debug]\n  level = '{log_level}'\n")])
