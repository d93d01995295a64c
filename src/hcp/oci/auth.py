"""Who we are to a registry: entries of a pull secret, and the tokens it gives for them."""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.oci.reference import DEFAULT_REGISTRY, Reference

_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s,]+))')


@dataclass(frozen=True, slots=True)
class Login:
    """One account at one registry."""

    username: str
    password: str = field(repr=False)
    identity_token: str | None = field(default=None, repr=False)

    @property
    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


class Auths:
    """A dockerconfigjson: the entry with the longest matching path answers."""

    def __init__(self, config: Mapping[str, Any] | None) -> None:
        self._logins: dict[str, Login] = {}
        entries = (config or {}).get("auths", {})
        if not isinstance(entries, Mapping) or not all(isinstance(one or {}, Mapping) for one in entries.values()):
            raise HcpError(
                'The pull secret has no "auths" that maps registries to logins.',
                hint="Use the file as it was downloaded.",
            )
        for key, entry in entries.items():
            login = _login(key, entry or {})
            if login is not None:
                self._logins[_normal(key)] = login

    @classmethod
    def parse(cls, data: bytes | str) -> Auths:
        """Read the value of `.dockerconfigjson` of a pull secret."""
        try:
            parsed = json.loads(data)
        except ValueError as exc:
            raise HcpError("The pull secret is not JSON", hint="Use the file as it was downloaded.") from exc
        if not isinstance(parsed, Mapping):
            raise HcpError('The pull secret has no "auths" mapping.', hint="Use the file as it was downloaded.")
        return cls(parsed)

    def find(self, ref: Reference) -> Login | None:
        """The account for this image: `host/a/b` before `host/a` before `host`."""
        path = ref.name
        while path:
            if path in self._logins:
                return self._logins[path]
            path, _, _ = path.rpartition("/")
        return None


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a registry asks for in WWW-Authenticate."""

    scheme: str
    realm: str = ""
    service: str = ""
    scope: str = ""


def parse_challenge(header: str) -> Challenge:
    """Read a WWW-Authenticate header."""
    scheme, _, rest = header.strip().partition(" ")
    found = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(rest)}
    return Challenge(scheme.lower(), found.get("realm", ""), found.get("service", ""), found.get("scope", ""))


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token and how long it is good."""

    value: str = field(repr=False)
    until: float

    @property
    def valid(self) -> bool:
        return time.monotonic() < self.until

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Token | None:
        value = answer.get("token") or answer.get("access_token")
        if not isinstance(value, str) or not value:
            return None
        seconds = answer.get("expires_in")
        life = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 60.0
        return cls(value, time.monotonic() + life * 0.8)


def _normal(key: str) -> str:
    """`https://index.docker.io/v1/` and friends → `docker.io`."""
    bare = key.partition("://")[2] or key
    bare = bare.rstrip("/")
    for suffix in ("/v1", "/v2"):
        bare = bare.removesuffix(suffix)
    host, slash, path = bare.partition("/")
    if host in ("index.docker.io", "registry-1.docker.io"):
        host = DEFAULT_REGISTRY
    return host + slash + path


def _login(key: str, entry: Mapping[str, Any]) -> Login | None:
    token = entry.get("identitytoken") or None
    if entry.get("auth"):
        try:
            pair = base64.b64decode("".join(str(entry["auth"]).split()), validate=True).decode()
            username, password = pair.split(":", 1)
        except (binascii.Error, ValueError) as exc:
            raise HcpError(f"The entry for {key} in the pull secret is not base64 of user:password.") from exc
        return Login(username, password, token)
    if entry.get("username"):
        return Login(str(entry["username"]), str(entry.get("password") or ""), token)
    return Login("<token>", "", token) if token else None
