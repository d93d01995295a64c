"""The bootstrap server as a process: a watch on its own namespace, a TLS listener, health and metrics."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from hcp.api.names import LABEL_IGNITION_SERVER, MARK_IGNITION_REACHED
from hcp.ignition.catalog import Catalog
from hcp.ignition.certs import read_pair
from hcp.ignition.server import BootstrapServer
from hcp.ignition.store import LABEL_CERTIFICATE, LABEL_DOCUMENT, Stored
from hcp.kube import Client
from hcp.kube.errors import ApiError
from hcp.kube.resources import SECRETS
from hcp.runtime.informer import Informer

log = logging.getLogger("hcp.ignition")


class Certificate:
    """The TLS context; a renewed certificate is used by the next connection, nothing restarts."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.loaded = asyncio.Event()

    def load(self, secret: Mapping[str, Any]) -> None:
        """Take the pair out of a Secret; a damaged one leaves the previous in use."""
        pair = read_pair(secret, "tls.crt", "tls.key")
        with tempfile.TemporaryDirectory() as directory:
            bundle = Path(directory) / "pair.pem"
            bundle.touch(0o600)
            bundle.write_bytes(pair.cert_pem + b"\n" + pair.key_pem)
            try:
                self.context.load_cert_chain(bundle)
            except (ssl.SSLError, OSError) as error:
                log.error("the serving certificate cannot be used: %s", error)
                return
        self.loaded.set()


class Process:
    """Everything one bootstrap server process holds."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self.catalog = Catalog()
        self.certificate = Certificate()
        self.served: dict[str, int] = {}
        self._marked: set[str] = set()

    def secret_changed(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Follow the watch."""
        secret = new if new is not None else old
        if secret is None:
            return
        metadata = secret.get("metadata") or {}
        kind = (metadata.get("labels") or {}).get(LABEL_IGNITION_SERVER)
        if kind == LABEL_CERTIFICATE and new is not None:
            self.certificate.load(new)
        elif kind == LABEL_DOCUMENT:
            if new is None:
                self.catalog.drop(metadata.get("name", ""))
                self._marked.discard(metadata.get("name", ""))
            else:
                self.catalog.put(new)

    async def mark_reached(self, entry: Stored) -> None:
        """Tell the operator that a machine came; not being able to must not keep the machine waiting."""
        if entry.name in self._marked:
            return
        self._marked.add(entry.name)
        body = {"metadata": {"annotations": {MARK_IGNITION_REACHED: "True"}}}
        try:
            await self._client.patch(SECRETS, entry.name, self._namespace, body)
        except ApiError as error:
            self._marked.discard(entry.name)
            log.warning("could not mark %s as reached: %s", entry.node_pool, error)

    def count(self, pool: str) -> None:
        """One document served."""
        self.served[pool] = self.served.get(pool, 0) + 1

    def metrics(self) -> str:
        """Prometheus text."""
        lines = ["# TYPE ign_server_get_request counter"]
        lines += [f'ign_server_get_request{{nodePool="{pool}"}} {self.served[pool]}' for pool in sorted(self.served)]
        lines += ["# TYPE ign_server_documents gauge", f"ign_server_documents {len(self.catalog)}"]
        return "\n".join(lines) + "\n"


def _audit(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve(client: Client, *, namespace: str, port: int, metrics_port: int, address: str | None = None) -> None:
    """Run until cancelled. Listens only once it has a certificate and its catalog is filled.

    Without an address on all, of both IP families.
    """
    process = Process(client, namespace)
    informer = Informer(client, SECRETS, ns=namespace, labels=LABEL_IGNITION_SERVER)
    informer.add_listener(process.secret_changed)
    server = BootstrapServer(process.catalog, reached=process.mark_reached, audit=_audit, count=process.count)
    runner = web.AppRunner(server.application(), access_log=None, keepalive_timeout=10)
    monitor = web.AppRunner(_monitoring(process), access_log=None)
    try:
        await monitor.setup()
        await web.TCPSite(monitor, address, metrics_port).start()
        await informer.start()
        await informer.wait_synced()
        await process.certificate.loaded.wait()
        await runner.setup()
        await web.TCPSite(runner, address, port, ssl_context=process.certificate.context).start()
        log.info("serving %d documents on port %d", len(process.catalog), port)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        await monitor.cleanup()
        await informer.stop()


def _monitoring(process: Process) -> web.Application:
    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(text=process.metrics())

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/healthz", healthz)
    return app
