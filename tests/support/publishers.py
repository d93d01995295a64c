"""Publishers on this machine: files under the paths of the real ones, a registry, and the bad days both can have."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@dataclass
class Publishers:
    """`files` are served by path; images as a registry does. Troubles are by path, and some pass after a while."""

    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, list[int]] = field(default_factory=dict)
    """Path → statuses to answer with before the file is given."""
    half: set[str] = field(default_factory=set)
    """Paths whose first answer breaks off in the middle."""
    pages: set[str] = field(default_factory=set)
    """Paths that a portal answers in their place, as soon as more than a look at them is asked for."""
    no_ranges: bool = False
    portal: bool = False
    bytes_per_second: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    ranges: list[str] = field(default_factory=list)
    url: str = ""

    def add_image(self, repository: str, tag: str, *layers: dict[str, bytes], listed: bool = True) -> str:
        """An image as official ones are: Docker's manifest form, below a list for several platforms."""
        blobs = [archive(layer) for layer in layers]
        config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"diff_ids": []}}).encode()
        for blob in (config, *blobs):
            self.files[f"/v2/{repository}/blobs/sha256:{sha256(blob)}"] = blob
        body = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "x", "digest": f"sha256:{sha256(config)}", "size": len(config)},
            "layers": [{"mediaType": "x", "digest": f"sha256:{sha256(blob)}", "size": len(blob)} for blob in blobs],
        }
        manifest = json.dumps(body).encode()
        digest = f"sha256:{sha256(manifest)}"
        self.files[f"/v2/{repository}/manifests/{digest}"] = manifest
        top = manifest
        if listed:
            entry = {"digest": digest, "platform": {"os": "linux", "architecture": "amd64"}}
            other = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}
            top = json.dumps({"schemaVersion": 2, "manifests": [other, entry]}).encode()
            self.files[f"/v2/{repository}/manifests/sha256:{sha256(top)}"] = top
        self.files[f"/v2/{repository}/manifests/{tag}"] = top
        return digest

    def answer(self, request: BaseHTTPRequestHandler, body: bool) -> None:
        path = request.path
        self.requests[path] += 1
        if self.portal or (path in self.pages and body):
            self._send(request, 200, b"<html>please log in</html>", {"Content-Type": "text/html"}, body)
        elif self.refusals.get(path) and body:
            self._send(request, self.refusals[path].pop(0), b"{}", {"Retry-After": "0"}, body)
        elif path in self.redirects:
            self._send(request, 302, b"", {"Location": self.url + self.redirects[path]}, body)
        elif path == "/v2/":
            self._send(request, 200, b"{}", {"Content-Type": "application/json"}, body)
        elif path not in self.files:
            self._send(request, 404, b"<html>not found</html>", {"Content-Type": "text/html"}, body)
        else:
            self._file(request, path, body)

    def _file(self, request: BaseHTTPRequestHandler, path: str, body: bool) -> None:
        data, status, headers = self.files[path], 200, {"Content-Type": "application/octet-stream"}
        asked = request.headers.get("Range", "")
        if asked:
            self.ranges.append(asked)
        if asked and not self.no_ranges:
            start = int(asked.removeprefix("bytes=").rstrip("-"))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            data, status = data[start:], 206
        cut = path in self.half and body
        self.half.discard(path) if body else None
        self._send(request, status, data, headers, body, cut=cut)

    def _send(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        data: bytes,
        headers: dict[str, str],
        body: bool,
        cut: bool = False,
    ) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            request.send_header(name, value)
        request.end_headers()
        if not body:
            return
        sent = data[: len(data) // 2] if cut else data
        step = self.bytes_per_second // 20 or len(sent) or 1
        for start in range(0, len(sent), step):
            request.wfile.write(sent[start : start + step])
            if self.bytes_per_second:
                time.sleep(0.05)
        if cut:
            request.close_connection = True


def serve(publishers: Publishers) -> tuple[ThreadingHTTPServer, threading.Thread]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            publishers.answer(self, body=True)

        def do_HEAD(self) -> None:
            publishers.answer(self, body=False)

        def log_message(self, format: str, *args: Any) -> None:
            """A test's server has nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    publishers.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    return server, thread
