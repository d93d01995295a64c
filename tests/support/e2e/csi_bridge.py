"""The socket of a storage driver inside a pod, reached from here: a bridge in the pod, and a port of kubectl to it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence

from tests.support.eventually import eventually_sync

# Bytes both ways between a port of the pod's own loopback and the socket.
_BRIDGE = """
import asyncio, sys
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()
async def serve(reader, writer):
    inner, outer = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(pump(reader, outer), pump(inner, writer))
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2]))
    print("ready", flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)  # ends with who asked for it
    import os
    os._exit(0)
asyncio.run(main())
"""


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


@contextlib.contextmanager
def bridged(kubectl: Sequence[str], pod: str, container: str, path: str) -> Iterator[str]:
    """An address of this machine that leads to the socket at `path` in the pod. `kubectl` names the namespace too."""
    inside, here = free_port(), free_port()
    inner = subprocess.Popen(
        [*kubectl, "exec", "-i", pod, "-c", container, "--", "python3", "-c", _BRIDGE, path, str(inside)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert inner.stdout is not None and inner.stdout.readline() == b"ready\n"
    outer = subprocess.Popen(
        [*kubectl, "port-forward", pod, f"{here}:{inside}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually_sync(lambda: _answers(here), "the port leads to the pod", 60)
        yield f"dns:///127.0.0.1:{here}"
    finally:
        outer.kill()
        outer.wait()
        inner.communicate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
