"""Something outside the management cluster to call: a network namespace behind the machine, with a listener."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually_sync

from hcp import pki

ADDRESS, PORT = "198.18.250.2", 8443
_MACHINE = "198.18.250.1"
_NAME, _LINK = "hcp-e2e-world", "hcp-e2e-w"
_SERVE = """
import http.server, json, socket, ssl, sys, threading
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print("asked", self.path, flush=True)
        self.send_error(404)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {**asked, "response": {"uid": asked["request"]["uid"], "allowed": True}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print("called", flush=True)
def hear():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", int(sys.argv[2])))
    while True:
        print("heard", s.recv(100).decode(), flush=True)
threading.Thread(target=hear, daemon=True).start()
server = http.server.ThreadingHTTPServer(("", int(sys.argv[2])), H)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True)
server.serve_forever()
"""
WEBHOOK = _SERVE


class World:
    """A server out there: `calls` is how often it was asked as a webhook, `heard` which datagrams came."""

    def __init__(self, ca_pem: bytes, log: Path) -> None:
        self.ca_pem = ca_pem
        self._log = log

    @property
    def heard(self) -> set[str]:
        lines = self._log.read_text().splitlines()
        return {line.removeprefix("heard ") for line in lines if line.startswith("heard ")}

    @property
    def calls(self) -> int:
        return self._log.read_text().count("called")


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


def webhook_pem(ca: pki.KeyPair, *, ips: tuple[str, ...] = (), dns: tuple[str, ...] = ()) -> bytes:
    """Certificate and key of a webhook server, in one file."""
    pair = pki.issue(ca, "webhook", ips=ips, dns=dns, usage="server")
    return pair.cert_pem + pair.key_pem


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Brings it up, and takes it away."""
    ca = pki.new_ca("world")
    file, log = folder / "world.pem", folder / "world.log"
    file.write_bytes(webhook_pem(ca, ips=(ADDRESS,)))
    _ip("netns", "delete", _NAME, check=False)
    _ip("netns", "add", _NAME)
    process = None
    try:
        _ip("link", "add", _LINK, "type", "veth", "peer", "name", "eth0", "netns", _NAME)
        _ip("address", "add", f"{_MACHINE}/30", "dev", _LINK)
        _ip("link", "set", _LINK, "up")
        for words in (f"address add {ADDRESS}/30 dev eth0", "link set eth0 up", f"route add default via {_MACHINE}"):
            _ip("-n", _NAME, *words.split())
        with log.open("w") as out:
            command = ["ip", "netns", "exec", _NAME, sys.executable, "-c", _SERVE, str(file), str(PORT)]
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        eventually_sync(lambda: "ready" in log.read_text(), "the world outside")
        yield World(ca.cert_pem, log)
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        _ip("netns", "delete", _NAME, check=False)
