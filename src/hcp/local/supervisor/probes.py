"""Asking a process whether it is well, without any HTTP library."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from urllib.parse import urlsplit

from hcp.local.supervisor.processes import Probe

TIMEOUT = 5.0


async def check(probe: Probe) -> str:
    """Empty when well, otherwise what was wrong in a few words."""
    try:
        async with asyncio.timeout(TIMEOUT):
            if probe.socket:
                _, writer = await asyncio.open_unix_connection(probe.socket)
                writer.close()
                return ""
            return await _get(probe)
    except TimeoutError:
        return f"no answer within {TIMEOUT:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, IndexError):
        return "answers something that is not HTTP"


async def _get(probe: Probe) -> str:
    url = urlsplit(probe.url)
    host, port = url.hostname or "", url.port or 80
    context = _tls(probe.ca, probe.cert, probe.key) if url.scheme == "https" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        path = url.path + (f"?{url.query}" if url.query else "")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        status = (await reader.readline()).split()
        code = int(status[1])
        return "" if 200 <= code < 300 else f"answers {code}"
    finally:
        writer.transport.abort()


@cache
def _tls(ca: str, cert: str, key: str) -> ssl.SSLContext:
    """With a CA the server is verified; kubelet-style self-issued endpoints are asked for liveness only."""
    context = ssl.create_default_context(cafile=ca or None)
    context.check_hostname = False
    if not ca:
        context.verify_mode = ssl.CERT_NONE
    if cert:
        context.load_cert_chain(cert, key)
    return context
