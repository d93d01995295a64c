"""What volumes and snapshots are called, in the infra cluster and on the disk itself. Pure."""

from __future__ import annotations

import hashlib
import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MOST = 63
# SCSI shows 36 characters of a serial number, virtio block 20.
_SERIAL = 20


def valid(handle: str) -> bool:
    """Whether anything of ours can be called so; what is not a name never becomes part of a request."""
    return len(handle) <= _MOST and _LABEL.fullmatch(handle) is not None


def handle_for(name: str, prefix: str) -> str:
    """The handle of what a sidecar wants to have called `name`: the name itself where it fits."""
    if valid(name):
        return name
    return f"{prefix}-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def serial(handle: str) -> str:
    """The serial number of the disk, by which a node finds it."""
    return hashlib.sha256(handle.encode()).hexdigest()[:_SERIAL]
