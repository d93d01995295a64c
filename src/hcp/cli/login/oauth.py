"""Talking to an OAuth server: discovery, tokens for a password, a code or a refresh token.

With the interpreter's own HTTP client: kubectl runs this before its first request, so it has to start fast.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from hcp.api.names import OAUTH_CLIENT
from hcp.errors import HcpError

# Who one is, in which groups, and a token to go on with.
SCOPES = "openid profile email groups offline_access"
TIMEOUT = 60.0
MAX_ANSWER = 1 << 20
_EMBEDDED = re.compile(r"\.apps\.(\d{1,3}(?:-\d{1,3}){3})\.hcp\.test$")


class Refused(HcpError):
    """The server's answer is no."""


@dataclass(frozen=True)
class Server:
    """An OAuth server, and who has to have signed for it; without that the system's own roots decide."""

    issuer: str
    ca: str = ""

    def discover(self) -> dict[str, Any]:
        found = self._ask("GET", f"{self.issuer}/.well-known/openid-configuration")
        if found.get("issuer") != self.issuer:
            raise HcpError(f"the server at {self.issuer} says that it is {str(found.get('issuer'))[:200]!a}")
        return found

    def tokens(self, **asked: str) -> dict[str, Any]:
        endpoint = str(self.discover().get("token_endpoint") or "")
        return self._ask("POST", endpoint, urlencode({"client_id": OAUTH_CLIENT, **asked}))

    def by_password(self, user: str, password: str) -> dict[str, Any]:
        return self.tokens(grant_type="password", username=user, password=password, scope=SCOPES)

    def by_refresh(self, token: str) -> dict[str, Any]:
        return self.tokens(grant_type="refresh_token", refresh_token=token)

    def _ask(self, method: str, url: str, body: str | None = None) -> dict[str, Any]:
        where = urlsplit(url)
        if where.scheme != "https" or not where.hostname:
            raise HcpError(f"{url[:200]!a} is not the https address of an OAuth server")
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = _Connection(where.hostname, where.port, _context(self.ca))
        try:
            connection.request(method, where.path or "/", body, headers)
            answer = connection.getresponse()
            content = answer.read(MAX_ANSWER)
        except ssl.SSLCertVerificationError as exc:
            hint = "--certificate-authority names a file with who signed for it"
            raise HcpError(
                f"the OAuth server {self.issuer} cannot be trusted", cause=exc.verify_message, hint=hint
            ) from exc
        except (OSError, HTTPException) as exc:
            raise HcpError(f"the OAuth server {self.issuer} cannot be reached", cause=str(exc)) from exc
        finally:
            connection.close()
        try:
            parsed = json.loads(content)
        except ValueError:
            parsed = {}
        found: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        if answer.status in (400, 401, 403):
            said = str(found.get("error_description") or found.get("error") or answer.reason)
            raise Refused("the OAuth server refuses the login", cause=said[:300])
        if answer.status != 200 or not found:
            raise HcpError(f"the OAuth server {self.issuer} answers {answer.status} {answer.reason}")
        return found


class _Connection(HTTPSConnection):
    """Names of embedded clusters carry their address: no DNS of this machine has to know them."""

    def __init__(self, host: str, port: int | None, trust: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=TIMEOUT, context=trust)
        self._trust = trust

    def connect(self) -> None:
        found = _EMBEDDED.search(self.host)
        if found is None:
            super().connect()
            return
        plain = socket.create_connection((found[1].replace("-", "."), self.port), TIMEOUT)
        self.sock = self._trust.wrap_socket(plain, server_hostname=self.host)


def _context(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=ca)
        except ssl.SSLError as exc:
            raise HcpError("the certificate authority cannot be read", cause=str(exc)) from exc
    return context
