"""One real kube-apiserver as the API of many guests: a front that keeps them apart.

    python bench/fleet_front.py --management KUBECONFIG --guests KUBECONFIG --port 6443 --stats-port 0

Every guest has an address of its own, 127.1.X.Y, where the front shows that cluster's own serving certificate and asks
for a client certificate of that cluster's own authority. What comes is sent on to the shared server: namespaces and
names of cluster-wide objects get the guest's prefix, lists of nodes and requests its label, and answers lose the prefix
again. Definitions of kinds are shared. Writes are counted by verb and kind; `GET /` on the other port tells them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import socket
import ssl
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hcp.kube import Client, load_config
from hcp.kube import resources as k

NAMESPACE = "clusters"
LABEL = "bench.hcp/guest"
# Nodes have names of their own; kinds are the same for all; requests are made by who plays kubelets.
SHARED = frozenset({"nodes", "customresourcedefinitions", "certificatesigningrequests", "apiservices"})
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def name_of(number: int) -> str:
    return f"c{number:04d}"


def prefix_of(number: int) -> str:
    return f"g{number:04d}-"


def address_of(number: int) -> str:
    return f"127.1.{number // 250}.{number % 250 + 1}"


def number_of(address: str) -> int:
    _, _, high, low = address.split(".")
    return int(high) * 250 + int(low) - 1


def placed(path: str, query: str, prefix: str) -> tuple[str, str, str, bool]:
    """Path and query on the shared server, the kind, and whether the object's own name gets the prefix."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return path, query, "", False
    start = 2 if parts[0] == "api" else 3
    own = False
    if parts[start] == "namespaces" and len(parts) > start + 1:
        parts[start + 1] = prefix + parts[start + 1]
        kind = parts[start + 2] if len(parts) > start + 2 else "namespaces"
        own = kind == "namespaces"
    else:
        kind = parts[start]
        if len(parts) > start + 1 and kind not in SHARED:
            parts[start + 1] = quote(prefix, safe="") + parts[start + 1]
        elif len(parts) == start + 1:
            given = dict(parse_qsl(query))
            mine = f"{LABEL}={prefix[:-1]}"
            given["labelSelector"] = f"{given['labelSelector']},{mine}" if given.get("labelSelector") else mine
            query = urlencode(given) if kind != "customresourcedefinitions" else query
        own = kind not in SHARED
    return "/" + "/".join(parts), query, kind, own


def renamed(body: bytes, prefix: str, own: bool) -> bytes:
    made = json.loads(body)
    meta = made.get("metadata") if isinstance(made, dict) else None
    if not meta:
        return body
    if meta.get("namespace"):
        meta["namespace"] = prefix + meta["namespace"]
    elif own and meta.get("name"):
        meta["name"] = prefix + meta["name"]
    return json.dumps(made, separators=(",", ":")).encode()


class Front:
    """Listens for all guests."""

    def __init__(self, management: Client, upstream: Client) -> None:
        self._management = management
        self._upstream = upstream
        self._contexts: dict[int, ssl.SSLContext] = {}
        self.writes: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.open = 0

    async def serve(self, port: int) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", port))
        listener.listen(4096)
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        running: set[asyncio.Task[None]] = set()
        while True:
            connection, _ = await loop.sock_accept(listener)
            task = loop.create_task(self._accepted(connection))
            running.add(task)
            task.add_done_callback(running.discard)

    async def _accepted(self, connection: socket.socket) -> None:
        number = number_of(connection.getsockname()[0])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            context = self._contexts.get(number) or await self._context(number)
            reader = asyncio.StreamReader(limit=2**22)
            protocol = asyncio.StreamReaderProtocol(reader)
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        except Exception:
            connection.close()
            return
        self.open += 1
        try:
            await Spoken(self, self._upstream, number, reader, writer).run()
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _context(self, number: int) -> ssl.SSLContext:
        hosted = f"{NAMESPACE}-{name_of(number)}"
        pair = (await self._management.get(k.SECRETS, "kas-server-crt", hosted))["data"]
        trusted = (await self._management.get(k.CONFIGMAPS, "client-ca", hosted))["data"]["ca.crt"]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=trusted)
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(pair["tls.crt"]) + b"\n" + base64.b64decode(pair["tls.key"]))
            file.flush()
            context.load_cert_chain(file.name)
        self._contexts[number] = context
        return context


class Spoken:
    """One connection of a guest's client, and its own one to the shared server."""

    def __init__(
        self, front: Front, upstream: Client, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._front = front
        self._upstream = upstream
        self._prefix = prefix_of(number)
        self._reader, self._writer = reader, writer
        self._there: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self) -> None:
        try:
            while await self._one():
                pass
        finally:
            if self._there is not None:
                self._there[1].close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._there is None:
            host, _, port = self._upstream.server.removeprefix("https://").partition(":")
            context = await self._upstream.transport._credentials.ssl_context()
            self._there = await asyncio.open_connection(host, int(port), ssl=context, limit=2**22)
        return self._there

    async def _one(self) -> bool:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        given = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        length = int(given.get("content-length") or 0)
        body = await self._reader.readexactly(length) if length else b""
        path, _, query = target.partition("?")
        path, query, kind, own = placed(path, query, self._prefix)
        verb = VERBS.get(method)
        if verb:
            self._front.writes[f"{verb} {kind}"] += 1
        self._front.requests[method] += 1
        if body:
            body = renamed(body, self._prefix, own)
        reader, writer = await self._connected()
        sent = [f"{method} {path}{'?' + query if query else ''} HTTP/1.1", "Host: guests"]
        sent += [f"{name}: {given[name]}" for name in ("content-type", "accept", "user-agent") if name in given]
        sent.append(f"Content-Length: {len(body)}")
        writer.write("\r\n".join(sent).encode("latin-1") + b"\r\n\r\n" + body)
        follows = "watch=" in query or "follow=" in query
        await self._answer(reader, follows=follows)
        return True

    async def _answer(self, reader: asyncio.StreamReader, *, follows: bool) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        given = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        kept = [lines[0]]
        kept += [f"{name}: {given[name]}" for name in ("content-type", "retry-after") if name in given]
        chunked = given.get("transfer-encoding") == "chunked"
        if chunked and follows:
            self._writer.write("\r\n".join([*kept, "Transfer-Encoding: chunked", "", ""]).encode("latin-1"))
            await self._lines(reader)
            return
        if chunked:
            body = b"".join([part async for part in _chunks(reader)])
        else:
            body = await reader.readexactly(int(given.get("content-length") or 0))
        body = self._stripped(body)
        self._writer.write("\r\n".join([*kept, f"Content-Length: {len(body)}", "", ""]).encode("latin-1") + body)
        await self._writer.drain()

    async def _lines(self, reader: asyncio.StreamReader) -> None:
        """A watch: whole events only, since a prefix must not be cut."""
        left = b""
        parts = _chunks(reader)
        ended = asyncio.ensure_future(self._reader.read(1))  # nothing comes but the end
        try:
            while True:
                coming = asyncio.ensure_future(anext(parts, None))
                await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await coming
                    raise asyncio.IncompleteReadError(b"", None)
                if (part := coming.result()) is None:
                    break
                whole, cut, rest = (left + part).rpartition(b"\n")
                left = rest
                if cut:
                    self._chunk(self._stripped(whole + cut))
                    await self._writer.drain()
            if left:
                self._chunk(self._stripped(left))
            self._writer.write(b"0\r\n\r\n")
        finally:
            ended.cancel()

    def _chunk(self, data: bytes) -> None:
        self._writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _stripped(self, data: bytes) -> bytes:
        return data.replace(f'"{self._prefix}'.encode(), b'"')


async def _chunks(reader: asyncio.StreamReader):  # type: ignore[no-untyped-def]
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if not size:
            return
        yield data[:-2]


async def tell(front: Front, port: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            told = {"writes": front.writes, "requests": front.requests, "open": front.open}
            body = json.dumps(told).encode()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    await (await asyncio.start_server(answer, "127.0.0.1", port)).serve_forever()


async def main(options: argparse.Namespace) -> None:
    # Thousands of connections: of their buffers, what one request needs.
    asyncio.sslproto.SSLProtocol.max_size = 32 * 1024  # type: ignore[attr-defined]
    async with Client(load_config(options.management)) as management, Client(load_config(options.guests)) as guests:
        front = Front(management, guests)
        await asyncio.gather(front.serve(options.port), tell(front, options.stats_port))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--management", required=True)
    parser.add_argument("--guests", required=True)
    parser.add_argument("--port", type=int, default=6443)
    parser.add_argument("--stats-port", type=int, required=True)
    asyncio.run(main(parser.parse_args()))
