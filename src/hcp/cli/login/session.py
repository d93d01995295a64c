"""A login as it is kept on disk: whose tokens, where they come from, and how to get the next one."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hcp.cli.login.oauth import Refused, Server
from hcp.errors import HcpError

# A token that ends sooner than this is renewed first: the request it is for still has to be made.
SPARE = 60


@dataclass(frozen=True)
class Session:
    issuer: str
    ca: str
    id_token: str
    refresh_token: str
    ends: int
    # How to log in again, for the message when this one is over.
    again: str = ""

    @property
    def expiration(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.ends))


def claims(token: str) -> dict[str, Any]:
    """What a token says. The API server checks it; here it is only read."""
    try:
        part = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, IndexError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("exp"), int):
        raise HcpError("the OAuth server gave a token that cannot be read")
    return found


def made(server: Server, answer: dict[str, Any], again: str) -> Session:
    token = str(answer.get("id_token") or "")
    ends = int(claims(token)["exp"])
    return Session(server.issuer, server.ca, token, str(answer.get("refresh_token") or ""), ends, again)


def path_for(server: str, issuer: str, user: str) -> Path:
    """One file for each cluster and user; nothing but a hash of both in its name."""
    mark = hashlib.sha256(f"{server}\n{issuer}\n{user}".encode()).hexdigest()[:24]
    return Path.home() / ".kube" / "cache" / "hcp-login" / f"{mark}.json"


def write(path: Path, session: Session) -> None:
    """Readable by its owner only, and never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(asdict(session), file)
    fresh.replace(path)


def read(path: Path, prog: str) -> Session:
    try:
        return Session(**json.loads(path.read_text()))
    except FileNotFoundError:
        raise HcpError(f"there is no login in {path}", hint=f"{prog} login makes one") from None
    except (OSError, ValueError, TypeError) as exc:
        raise HcpError(f"the login in {path} cannot be read", cause=str(exc), hint=f"{prog} login makes one") from exc


def renewed(text: str, prog: str) -> Session:
    """A session whose token is good for a while. One process renews it, others wait for that."""
    path = Path(text)
    held = read(path, prog)
    if held.ends - time.time() > SPARE:
        return held
    with _locked(path):
        held = read(path, prog)
        if held.ends - time.time() > SPARE:
            return held
        over = f"log in again: {held.again or f'{prog} login'}"
        if not held.refresh_token:
            raise HcpError("the login is over", hint=over)
        server = Server(held.issuer, held.ca)
        try:
            answer = server.by_refresh(held.refresh_token)
        except Refused as exc:
            raise HcpError("the login is over", cause=exc.cause, hint=over) from exc
        following = made(server, answer, held.again)
        held = following if following.refresh_token else replace(following, refresh_token=held.refresh_token)
        write(path, held)
        return held


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path.with_suffix(".lock"), "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
