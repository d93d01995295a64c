"""The file of a backup: a line that anybody may read, then pieces that are encrypted and hang together. Pure.

    hcp-backup 1\n
    {"cluster": …}\n            what `hcp backup list` shows; part of what every piece proves
    length, piece, length, piece, …

A length has four bytes, and its highest bit marks the last piece. Each piece is AES-256-GCM with its number and that
mark as nonce: pieces that are changed, left out, swapped, or taken from another file are refused, and so is a file that
ends early. The key is made for one file only, of a passphrase or a key and of a random salt, so a nonce is never used
twice. Without encryption each piece ends with a SHA-256 over itself and the sum before: that finds what a disk did, not
what a person did.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hcp.errors import HcpError

MAGIC = b"hcp-backup 1\n"
LONGEST_HEADER = 16 * 1024
PIECE = 1024 * 1024
# With what encryption or a sum adds.
LONGEST_PIECE = PIECE + 64
_LAST = 1 << 31
_KEY_BYTES = 32
# Takes 32 MiB of memory and a tenth of a second; fixed, so that no file can ask for more.
_SCRYPT: dict[str, int] = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024**2, "dklen": _KEY_BYTES}
PASSPHRASE, KEY, NOTHING = "passphrase", "key", ""


class BrokenBackup(HcpError):
    """The file is not what was written."""


@dataclass(frozen=True, slots=True)
class Lock:
    """What a file is encrypted with; made of nothing, it is not."""

    kind: str = NOTHING
    secret: bytes = b""


@dataclass(frozen=True, slots=True)
class Header:
    """What can be read without a key. `told` is for people and proves nothing where there is no encryption."""

    kind: str
    salt: bytes
    told: Mapping[str, Any]
    raw: bytes


def new_header(lock: Lock, told: Mapping[str, Any], salt: bytes | None = None) -> Header:
    salt = os.urandom(32) if salt is None else salt
    body = {**told, "encryption": lock.kind, "salt": base64.b64encode(salt).decode()}
    return Header(lock.kind, salt, told, MAGIC + json.dumps(body, sort_keys=True).encode() + b"\n")


def read_header(start: bytes) -> Header | None:
    """Of the first bytes of a file; None while there are too few."""
    if not start.startswith(MAGIC[: len(start)]):
        raise BrokenBackup("this is no backup of hcp", cause="it does not begin as one")
    end = start.find(b"\n", len(MAGIC), LONGEST_HEADER)
    if end < 0:
        if len(start) >= LONGEST_HEADER:
            raise BrokenBackup("this is no backup of hcp", cause="its first line is too long")
        return None
    try:
        body = json.loads(start[len(MAGIC) : end])
        kind, salt = body.pop("encryption"), base64.b64decode(body.pop("salt"), validate=True)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError, binascii.Error):
        raise BrokenBackup("this is no backup of hcp", cause="its first line cannot be read") from None
    if kind not in (PASSPHRASE, KEY, NOTHING) or len(salt) != 32:
        raise BrokenBackup("this backup is encrypted in a way that this hcp does not know", hint="use a newer hcp")
    return Header(kind, salt, body, start[: end + 1])


def _file_key(lock: Lock, header: Header) -> bytes:
    if lock.kind == PASSPHRASE:
        return hashlib.scrypt(lock.secret, salt=header.salt, **_SCRYPT)
    return HKDF(SHA256(), _KEY_BYTES, header.salt, b"hcp backup").derive(lock.secret)


class _Chain:
    """What writing and reading share: the number of the next piece, and what proves it."""

    def __init__(self, lock: Lock, header: Header) -> None:
        self._about = hashlib.sha256(header.raw).digest()
        self._cipher = AESGCM(_file_key(lock, header)) if header.kind != NOTHING else None
        self._count = 0

    def _mark(self, last: bool) -> bytes:
        return self._count.to_bytes(11, "big") + bytes((last,))

    def _sum(self, data: bytes, mark: bytes) -> bytes:
        return hashlib.sha256(self._about + mark + data).digest()


class Sealer(_Chain):
    """Makes the pieces of a file, one after the other."""

    def seal(self, data: bytes, *, last: bool = False) -> bytes:
        mark = self._mark(last)
        if self._cipher is not None:
            sealed = self._cipher.encrypt(mark, data, self._about)
        else:
            digest = self._sum(data, mark)
            sealed, self._about = data + digest, digest
        self._count += 1
        return (len(sealed) | (_LAST if last else 0)).to_bytes(4, "big") + sealed


def length_of(prefix: bytes) -> tuple[int, bool]:
    """How long the next piece is, and whether it is the last."""
    number = int.from_bytes(prefix, "big")
    length, last = number & ~_LAST, bool(number & _LAST)
    if not 0 < length <= LONGEST_PIECE:
        raise BrokenBackup("the backup is damaged", cause="it has a piece of an impossible length")
    return length, last


class Opener(_Chain):
    """Reads the pieces of a file in their order."""

    def __init__(self, lock: Lock, header: Header) -> None:
        check(lock, header)
        super().__init__(lock, header)

    def open(self, sealed: bytes, *, last: bool) -> bytes:
        mark = self._mark(last)
        if self._cipher is not None:
            try:
                data = self._cipher.decrypt(mark, sealed, self._about)
            except InvalidTag:
                raise self._refused() from None
        else:
            data, digest = sealed[:-32], sealed[-32:]
            if self._sum(data, mark) != digest:
                raise BrokenBackup("the backup is damaged", cause=f"the sum of piece {self._count + 1} is another one")
            self._about = digest
        self._count += 1
        return data

    def _refused(self) -> BrokenBackup:
        if self._count:
            return BrokenBackup("the backup is damaged or was changed", cause=f"piece {self._count + 1} is not genuine")
        return BrokenBackup(
            "the backup cannot be opened", cause="the passphrase or key is another one, or the file was changed"
        )


def check(lock: Lock, header: Header) -> None:
    """Whether what a person gave is what the file asks for."""
    if lock.kind == header.kind:
        return
    flag = {PASSPHRASE: "--passphrase-file", KEY: "--key-file"}
    if header.kind == NOTHING:
        raise BrokenBackup(
            "the backup is not encrypted, so nothing proves who wrote it",
            cause=f"{flag[lock.kind]} was given",
            hint="leave it out and say --no-encryption if you trust the store",
        )
    raise BrokenBackup(
        f"the backup is encrypted with a {header.kind}",
        hint=f"give it with {flag[header.kind]}",
    )
