"""A node of an embedded cluster, the machine under it and a pod, as network namespaces with real packets."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

_NUMBERS = itertools.count()
PORTS = (6443, 10250, 10256, 5000)
# Every answer is the address that the caller has here.
SERVE = """
import asyncio, sys

async def main():
    async def answer(reader, writer):
        writer.write(writer.get_extra_info("peername")[0].encode())
        await writer.drain()
        writer.close()
    servers = [await asyncio.start_server(answer, None, int(port)) for port in sys.argv[1:]]
    print("listening", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
KNOCK = """
import socket, sys
source, address, port = sys.argv[1:]
try:
    found = socket.create_connection((address, int(port)), 10, (source, 0) if source else None)
    found.settimeout(10)
    print("open", found.recv(100).decode())
except ConnectionRefusedError:
    print("refused")
except OSError:
    print("closed")
"""


class Networks:
    """A node, the machine under it, which stands for other clusters too, and a pod."""

    def __init__(self) -> None:
        mark = f"{os.getpid()}-{next(_NUMBERS)}"
        self.node, self.machine, self.pod = (f"hcp-{name}-{mark}" for name in ("node", "machine", "pod"))
        self._servers: list[subprocess.Popen[str]] = []

    def run(self, namespace: str, *command: str, stdin: str = "") -> str:
        whole = ["ip", "netns", "exec", namespace, *command]
        done = subprocess.run(whole, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def serve(self, namespace: str, *ports: int) -> None:
        """Listens on all addresses of both families."""
        whole = ["ip", "netns", "exec", namespace, sys.executable, "-I", "-c", SERVE, *map(str, ports)]
        server = subprocess.Popen(whole, stdout=subprocess.PIPE, text=True)
        self._servers.append(server)
        assert server.stdout is not None and server.stdout.readline() == "listening\n"

    def seen(self, namespace: str, source: str, address: str, port: int) -> str:
        """As which address the caller is seen there; nothing when it does not get there."""
        said = self._said(namespace, source, address, port)
        return said.partition(" ")[2]

    def knock(self, namespace: str, source: str, address: str, port: int) -> str:
        said = self._said(namespace, source, address, port).partition(" ")[0]
        assert said in ("open", "refused", "closed")
        return said

    def _said(self, namespace: str, source: str, address: str, port: int) -> str:
        return self.run(namespace, sys.executable, "-I", "-c", KNOCK, source, address, str(port)).strip()

    def opens(self, namespace: str, source: str, address: str, port: int) -> bool:
        return self.knock(namespace, source, address, port) == "open"

    def open_ports(self, source: str, address: str) -> tuple[int, ...]:
        """Which of `PORTS` the machine reaches from an address of its."""
        return tuple(port for port in PORTS if self.opens(self.machine, source, address, port))

    def end(self) -> None:
        for server in self._servers:
            server.kill()
            server.communicate()
        for name in (self.pod, self.node, self.machine):
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)
