"""From an empty cache to a hosted cluster with nodes, when what publishers offer comes over a slow link.

    sudo .venv/bin/python bench/downloads.py [--mbit 100] [--nodes 2] [--managers FOLDER] [--json FILE]

The servers are on this machine, under the publishers' own paths, and give all their visitors together that many
megabits a second. What they give are stand-ins: our own builds of the same programs, packed as the publishers pack
them. So the pinned sums are those of the stand-ins here, and KubeVirt is taken although an official one might not run
on this kernel. What has no official build (`hcp payload build` says what and why) is built, from the machine's own
package registries at their own speed. All payloads must be in the cache: they are what is given out. Managers of
Cluster API without our patches, as bench/unpatched.py makes them, are given out instead of ours with --managers.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hcp import payload
from hcp.oci.reference import Reference
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.oci.writer_layout import read_layout
from hcp.payload import Component, Download
from hcp.payload.checksums import sha256_file
from hcp.payload.official import OfficialImage
from hcp.payload.registry import default_registry

NAME = "downloads"
SITES = ("github.com", "api.github.com", "dl.k8s.io")
REGISTRIES = ("docker.io", "quay.io", "registry.k8s.io", "ghcr.io")
CHUNK = 64 << 10
# Runs in every Python of the measured commands: stand-ins have sums of their own, and run on every kernel.
STAND_INS_ARE_GOOD = """
import dataclasses, json, os
import hcp.payload.download as download, hcp.payload.images.virt as virt, hcp.payload.images.virt_manifests as manifests
with open(os.environ["BENCH_PINS"]) as handle:
    pins = json.load(handle)
fetch = download.fetch
download.fetch = lambda item, ctx: fetch(dataclasses.replace(item, sha256=pins.get(item.url, item.sha256)), ctx)
virt.kubevirt_unfit = manifests.kubevirt_unfit = lambda: ""
"""


class Shelf:
    """Path on the server → file, and the sums that are pinned."""

    def __init__(self, folder: Path, managers: Path | None = None) -> None:
        self.folder, self.managers = folder, managers
        self.files: dict[str, Path] = {}
        self.pins: dict[str, str] = {}

    def put(self, path: str, content: bytes) -> None:
        target = self.folder / hashlib.sha256(path.encode()).hexdigest()
        target.write_bytes(content)
        self.files[path] = target

    def offer(self, component: Component, artifact: Path) -> None:
        for item in component.downloads:
            if isinstance(item, Download):
                self._file(item, artifact)
            elif isinstance(item, OfficialImage):
                self._image(item, artifact)

    def _file(self, item: Download, artifact: Path) -> None:
        path = urlsplit(item.url).path
        if set(item.members) == {"."}:
            packed = artifact / item.members["."]
        else:
            packed = self.folder / hashlib.sha256(item.url.encode()).hexdigest()
            with gzip.open(packed, "wb", compresslevel=6) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
                for member, inside in item.members.items():
                    archive.add(artifact / inside, member)
        self.files[path] = packed
        found = sha256_file(packed)
        if item.sha256 is not None:
            self.pins[item.url] = found
        elif item.sums_url and "api.github.com" in item.sums_url:
            asset = {"name": path.rsplit("/", 1)[-1], "digest": f"sha256:{found}"}
            self.put(urlsplit(item.sums_url).path, json.dumps({"assets": [asset]}).encode())
        elif item.sums_url:
            self.put(urlsplit(item.sums_url).path, f"{found}  {path.rsplit('/', 1)[-1]}\n".encode())

    def _image(self, item: OfficialImage, artifact: Path) -> None:
        layout = artifact / "image"
        if not item.name:  # an image around the programs that are taken out of it
            layout = Path(tempfile.mkdtemp(dir=self.folder))
            layer = Layer("programs")
            for member, inside in item.members.items():
                layer.binary(f"/{member}", self._program(artifact, inside))
            write_image(layout, item.image, [layer], ImageConfig())
        reference = Reference.parse(item.image)
        found = read_layout(layout)
        manifest = layout / "blobs/sha256" / found.digest.removeprefix("sha256:")
        base = f"/v2/{reference.repository}"
        self.files[f"{base}/manifests/{reference.tag}"] = self.files[f"{base}/manifests/{found.digest}"] = manifest
        for blob in (layout / "blobs/sha256").iterdir():
            self.files[f"{base}/blobs/sha256:{blob.name}"] = blob

    def _program(self, artifact: Path, inside: str) -> Path:
        other = self.managers / Path(inside).name if self.managers else None
        return other if other and other.exists() else artifact / inside


class Link:
    """One line that everybody shares: so many bytes a second."""

    def __init__(self, bytes_per_second: float) -> None:
        self.rate, self.free_at, self.total = bytes_per_second, 0.0, 0
        self.lock = threading.Lock()

    def take(self, size: int) -> None:
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + size / self.rate
            self.total += size
            wait = self.free_at - now
        time.sleep(wait)


def serve(shelf: Shelf, link: Link) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            file = shelf.files.get(self.path)
            if self.path == "/v2/":
                self._head(200, 2, "application/json")
                self.wfile.write(b"{}" if body else b"")
            elif file is None:
                self._head(404, 0, "text/plain")
            else:
                self._file(file, body)

        def _file(self, file: Path, body: bool) -> None:
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
            manifest = "/manifests/" in self.path
            kind = json.loads(file.read_bytes())["mediaType"] if manifest else "application/octet-stream"
            self._head(206 if start else 200, file.stat().st_size - start, kind)
            if body:
                self._body(file, start)

        def _head(self, status: int, length: int, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def _body(self, file: Path, start: int) -> None:
            with file.open("rb") as handle:
                handle.seek(start)
                while chunk := handle.read(CHUNK):
                    link.take(len(chunk))
                    self.wfile.write(chunk)

        def log_message(self, format: str, *args: Any) -> None:
            """Only the measured command speaks."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def fill(shelf: Shelf, names: Iterable[str]) -> None:
    registry = default_registry()
    for name in names:
        component = registry.get(name)
        if not component.downloads or component.on_request or name == "kubernetes-1.35":
            continue
        artifact = payload.find(name)
        if artifact is None:
            raise SystemExit(f"{name} is not in the cache: hcp payload build {name}")
        shelf.offer(component, artifact)


def measure(mbit: float, nodes: int, folder: Path, managers: Path | None) -> dict[str, Any]:
    shelf, link = Shelf(folder / "shelf", managers), Link(mbit * 1e6 / 8)
    shelf.folder.mkdir()
    fill(shelf, default_registry().names())
    (folder / "pins.json").write_text(json.dumps(shelf.pins))
    (folder / "sitecustomize.py").write_text(STAND_INS_ARE_GOOD)
    server = serve(shelf, link)
    port = server.server_address[1]
    mirrors = [f"https://{site}=http://127.0.0.1:{port}" for site in SITES]
    mirrors += [f"{name}=http://127.0.0.1:{port}" for name in REGISTRIES]
    environment = {
        **os.environ,
        "HCP_MIRRORS": ",".join(mirrors),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(folder),
        "BENCH_PINS": str(folder / "pins.json"),
    }
    hcp = [sys.executable, "-m", "hcp"]
    tour = [*hcp, "demo", "--name", NAME, "--nodes", str(nodes), "--folder", str(folder / "tour")]
    began = time.monotonic()
    try:
        subprocess.run(tour, env=environment, check=True)
        seconds = time.monotonic() - began
        subprocess.run([*hcp, "payload", "timeline", "--all"], env=environment, check=True)
    finally:
        server.shutdown()
        subprocess.run([*hcp, "local", "down", "--name", NAME, "--purge"], env=environment, check=False)
    return {"seconds": round(seconds, 1), "mbit": mbit, "nodes": nodes, "downloaded_mb": link.total >> 20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mbit", type=float, default=100.0)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--managers", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hcp-downloads-", dir="/var/tmp"))
    try:
        found = measure(options.mbit, options.nodes, folder, options.managers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    amount = f"{found['downloaded_mb']} MiB at {options.mbit:g} Mbit/s"
    print(f"A hosted cluster with {found['nodes']} nodes after {found['seconds']} s; {amount}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
