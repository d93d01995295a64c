"""Files of names and hashes of passwords, and the password of `kubeadmin`. Pure but for drawing it."""

from __future__ import annotations

import base64
import hashlib
import secrets
from functools import lru_cache

# Without letters and digits that look alike, as in OpenShift: 23 of them with dashes, 120 bits.
_ALPHABET = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"
_DASHES = (5, 11, 17)
_LENGTH = 23
# What is guessed from a hash is hopeless for a password drawn like this, whatever a guess costs.
_ROUNDS = 10_000
KNOWN = ("$2a$", "$2b$", "$2y$", "$apr1$", "{SHA}", "$pbkdf2-sha256$")
MAX_COST = 16


def new_password() -> str:
    return "".join("-" if place in _DASHES else secrets.choice(_ALPHABET) for place in range(_LENGTH))


@lru_cache(maxsize=1024)
def hashed(password: str, salt: str) -> str:
    """PBKDF2; an equal salt gives an equal text, so that nothing is written anew."""
    salted = hashlib.sha256(salt.encode()).digest()[:16]
    found = hashlib.pbkdf2_hmac("sha256", password.encode(), salted, _ROUNDS)
    return f"$pbkdf2-sha256${_ROUNDS}${_packed(salted)}${_packed(found)}"


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=").replace("+", ".")


def line(user: str, hashed_password: str) -> bytes:
    return f"{user}:{hashed_password}\n".encode()


def problems(content: bytes) -> list[str]:
    """What is wrong with a file; nothing of a hash is told."""
    found, users = [], set()
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        if not text.strip():
            continue
        user, divided, value = text.strip().partition(":")
        if not divided or not user:
            found.append(f"line {number} is not written as name:hash")
            continue
        users.add(user)
        if not value.startswith(KNOWN):
            found.append(f"user {user[:100]!a} has a hash of a kind that is not known: make it with htpasswd -B")
        elif value.startswith("$2") and not _cost(value) <= MAX_COST:
            found.append(f"user {user[:100]!a} has a hash that costs more than {MAX_COST}")
    return found if users or found else ["its file has no users"]


def _cost(value: str) -> int:
    text = value[4:6]
    return int(text) if text.isdigit() else MAX_COST + 1
