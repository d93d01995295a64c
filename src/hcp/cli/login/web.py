"""Logging in by a browser: it comes back to a port of this machine with a code, which is good for tokens once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from hcp.api.names import OAUTH_CLIENT
from hcp.cli.engine.terminal import note
from hcp.cli.login.oauth import SCOPES, Server
from hcp.cli.login.session import claims
from hcp.errors import HcpError

PATH = "/callback"
SECONDS = 600
_DONE = "You are logged in. This page can be closed."
_FAILED = "The login failed; the terminal says why."


def by_browser(server: Server) -> dict[str, Any]:
    endpoint = str(server.discover().get("authorization_endpoint") or "")
    verifier, state, nonce = (secrets.token_urlsafe(48) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    with _Listener(("127.0.0.1", 0), _Answer) as listener:
        back = f"http://127.0.0.1:{listener.server_port}{PATH}"
        asked = {
            "client_id": OAUTH_CLIENT,
            "redirect_uri": back,
            "response_type": "code",
            "scope": SCOPES,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        url = f"{endpoint}?{urlencode(asked)}"
        note(f"Log in at\n{url}")
        # Some are waited for until they end, and they would wait for us.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        code = listener.wait_for_code(state)
    tokens = server.tokens(grant_type="authorization_code", code=code, redirect_uri=back, code_verifier=verifier)
    if claims(str(tokens.get("id_token") or "")).get("nonce") != nonce:
        raise HcpError("the token is not of this login")
    return tokens


class _Listener(HTTPServer):
    timeout = SECONDS
    answer: dict[str, list[str]]

    def wait_for_code(self, state: str) -> str:
        """What else calls, such as a browser that asks for an icon, is sent away by the handler."""
        self.answer = {}
        self.late = False
        while not self.answer and not self.late:
            self.handle_request()
        if self.late:
            raise HcpError(f"nobody logged in within {SECONDS // 60} minutes")
        if not hmac.compare_digest(self.answer.get("state", [""])[0], state):
            raise HcpError("the answer is not of this login", hint="log in again, in one browser window")
        if "code" not in self.answer:
            said = (self.answer.get("error_description") or self.answer.get("error") or ["no reason is given"])[0]
            raise HcpError("the OAuth server refuses the login", cause=said[:300])
        return self.answer["code"][0]

    def handle_timeout(self) -> None:
        self.late = True


class _Answer(BaseHTTPRequestHandler):
    server: _Listener

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        if where.path != PATH:
            self.send_error(404)
            return
        self.server.answer = parse_qs(where.query)
        text = (_DONE if "code" in self.server.answer else _FAILED).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """The code is in the line; it belongs into no log."""
