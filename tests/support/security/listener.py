"""A server of the attacker's own, which writes down who calls it and with which credentials."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hcp import pki


@dataclass
class Listener:
    """`calls`: the Authorization header of every request that came."""

    url: str
    ca_pem: bytes
    calls: list[str] = field(default_factory=list)


@contextmanager
def listening(folder: Path, *, tls: bool = True) -> Iterator[Listener]:
    ca = pki.new_ca("attacker-ca")
    pair = pki.issue(ca, "attacker", ips=("127.0.0.1",), dns=("localhost",), usage="server")
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.headers.get("Authorization", ""))
            self.send_response(403)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_CONNECT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        file = folder / "listener.pem"
        file.write_bytes(pair.cert_pem + pair.key_pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Listener(f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}", ca.cert_pem, calls)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
