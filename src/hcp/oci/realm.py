"""Where tokens may be asked for: at the registry itself, or at a host that the registry's certificate speaks for.

A registry names the place in its answer. A login sent to any other place would be a login given away.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import ssl
from typing import Any

from yarl import URL

from hcp.oci.address_policy import AddressPolicy

CONNECT_SECONDS = 15.0


def split(registry: str) -> tuple[str, int | None]:
    """Host and port of `host`, `host:port` or `[address]:port`."""
    url = URL(f"https://{registry}")
    return (url.host or "").lower(), url.explicit_port


def covers(certificate: dict[str, Any], host: str) -> bool:
    """Whether a certificate names this host; a wildcard stands for exactly one label."""
    wanted = host.lower().rstrip(".")
    for kind, value in certificate.get("subjectAltName") or ():
        name = str(value).lower()
        if kind == "DNS" and (name == wanted or _wildcard(name, wanted)):
            return True
        if kind == "IP Address" and _same_address(name, wanted):
            return True
    return False


def _wildcard(name: str, host: str) -> bool:
    first, _, rest = host.partition(".")
    return name.startswith("*.") and bool(first) and name[2:] == rest


def _same_address(one: str, other: str) -> bool:
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False


async def certificate(
    host: str, port: int, context: ssl.SSLContext, address_policy: AddressPolicy, *, watched: bool
) -> dict[str, Any]:
    """The registry's certificate, verified, over a connection like those of its requests."""
    loop = asyncio.get_running_loop()
    failure: OSError = OSError("the name has no address")
    async with asyncio.timeout(CONNECT_SECONDS):
        for info in await loop.getaddrinfo(host, port, type=1):
            try:
                sock = (address_policy.socket if watched else _any)(info)
            except OSError as exc:
                failure = exc
                continue
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, info[4])
                _, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname=host)
            except OSError as exc:
                sock.close()
                failure = exc
                continue
            found: dict[str, Any] = writer.get_extra_info("peercert") or {}
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return found
    raise failure


async def certificate_through(proxy: str, host: str, port: int, context: ssl.SSLContext) -> dict[str, Any]:
    """The same, for a registry that is reached through a proxy."""
    at = URL(proxy)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if at.user is not None:
        login = base64.b64encode(f"{at.user}:{at.password or ''}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {login}")
    async with asyncio.timeout(CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(at.host, at.port or 80)
        try:
            writer.write("\r\n".join([*lines, "", ""]).encode())
            try:
                said = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode("latin-1")
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as exc:
                raise OSError("the proxy gave no answer") from exc
            if said.split(" ")[1:2] != ["200"]:
                raise OSError(f"the proxy says {said[:100]}")
            await writer.start_tls(context, server_hostname=host)
            return writer.get_extra_info("peercert") or {}
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _any(info: tuple[Any, ...]) -> Any:
    import socket

    return socket.socket(info[0], info[1], info[2])
