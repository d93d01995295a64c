"""Reading the passphrase or key that a backup is encrypted with."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from hcp.backup.sealing import KEY, PASSPHRASE, Lock
from hcp.errors import HcpError

SHORTEST_PASSPHRASE = 12
KEY_BYTES = 32
_LONGEST_FILE = 64 * 1024


def passphrase(path: str) -> Lock:
    """The first line of a file; blanks around it do not count."""
    text = _read(path).strip().split(b"\n", 1)[0].strip()
    if len(text) < SHORTEST_PASSPHRASE:
        raise HcpError(
            f"the passphrase in {path} is too short",
            cause=f"it has {len(text)} characters, {SHORTEST_PASSPHRASE} are needed",
            hint="openssl rand -base64 24 makes a good one",
        )
    return Lock(PASSPHRASE, text)


def key(path: str) -> Lock:
    """32 random bytes, as they are or in base64."""
    raw = _read(path)
    if len(raw) != KEY_BYTES:
        try:
            raw = base64.b64decode(raw.strip(), validate=True)
        except binascii.Error:
            raw = b""
    if len(raw) != KEY_BYTES:
        raise HcpError(
            f"{path} holds no key",
            cause=f"{KEY_BYTES} bytes are needed, as they are or in base64",
            hint=f"openssl rand -base64 {KEY_BYTES} makes one",
        )
    return Lock(KEY, raw)


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(_LONGEST_FILE)
    except OSError as exc:
        raise HcpError(f"cannot read {path}", cause=exc.strerror or str(exc)) from None
