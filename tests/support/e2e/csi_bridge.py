"""A storage driver inside a pod, reached from here: its socket, and the folders it works in.

For each a small server in the pod, and a port of kubectl to it: a command of its own for every step would take seconds
in an emulated machine.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

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

# One line each way: what to do with which path.
_FOLDERS = """
import asyncio, os, shutil, sys
def done(word, path):
    if word == "create":
        os.makedirs(path, exist_ok=True)
    elif word == "remove":
        shutil.rmtree(path) if os.path.isdir(path) else os.path.lexists(path) and os.unlink(path)
    else:
        kinds = {"file": os.path.isfile, "directory": os.path.isdir, "other": os.path.lexists}
        return next((kind for kind, is_so in kinds.items() if is_so(path)), "not_found")
    return path
async def serve(reader, writer):
    word, _, path = (await reader.readline()).decode().strip().partition(" ")
    try:
        answer = done(word, path) if path else ""
    except OSError as error:
        answer = f"failed: {error}"
    writer.write(f"{answer}\\n".encode())
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)
    os._exit(0)
asyncio.run(main())
"""
# What csi-sanity calls, with a path.
_ASK = """#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/{port}
echo "{word} $1" >&3
read -r answer <&3
echo "$answer"
[[ $answer && $answer != failed* ]]
"""


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


@contextlib.contextmanager
def bridged(kubectl: Sequence[str], pod: str, container: str, path: str) -> Iterator[str]:
    """An address of this machine that leads to the socket at `path` in the pod. `kubectl` names the namespace too."""
    with _served(kubectl, pod, container, _BRIDGE, path) as port:
        yield f"dns:///127.0.0.1:{port}"


@contextlib.contextmanager
def folders(kubectl: Sequence[str], pod: str, container: str, place: Path) -> Iterator[dict[str, Path]]:
    """Programs of this machine, in `place`, that create, remove and check a path in the pod."""
    with _served(kubectl, pod, container, _FOLDERS) as port:
        made = {word: place / word for word in ("create", "remove", "check")}
        for word, path in made.items():
            path.write_text(_ASK.format(port=port, word=word))
            path.chmod(0o755)
        yield made


@contextlib.contextmanager
def _served(kubectl: Sequence[str], pod: str, container: str, program: str, *words: str) -> Iterator[int]:
    """A port of this machine that leads to a program in the pod; the last of its words is the port there."""
    inside, here = free_port(), free_port()
    inner = subprocess.Popen(
        [*kubectl, "exec", "-i", pod, "-c", container, "--", "python3", "-c", program, *words, str(inside)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert inner.stdout is not None and inner.stdout.readline() == b"ready\n"
    outer = subprocess.Popen(
        [*kubectl, "port-forward", pod, f"{here}:{inside}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        eventually_sync(lambda: _answers(here), "the port leads to the pod", 60)
        yield here
    finally:
        outer.kill()
        outer.wait()
        inner.communicate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
