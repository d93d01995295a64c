"""Nodes and pods of a cluster as network namespaces: bridges, wires and real packets, without machines.

A node is a namespace with a bridge for its pods, as the release's own network makes it; a wire joins the nodes where
flannel would. Programs run in the file system of an image, as they would in their pod. Needs root.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.eventually import eventually_sync

from hcp.oci.writer_layout import read_layout

# Inside a mount namespace of its own, so that nothing of it is left on the machine.
_INSIDE = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
# Bytes between a listener and a server, each "tcp:PORT" on this machine's loopback or "unix:PATH".
_FORWARD = """
import asyncio, sys
def place(text):
    kind, _, where = text.partition(":")
    return kind, where
async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
async def joined(reader, writer):
    kind, where = place(sys.argv[2])
    there = asyncio.open_unix_connection(where) if kind == "unix" else asyncio.open_connection("127.0.0.1", int(where))
    other, back = await there
    await asyncio.gather(copy(reader, back), copy(other, writer))
async def main():
    kind, where = place(sys.argv[1])
    unix, tcp = asyncio.start_unix_server, asyncio.start_server
    begun = await (unix(joined, where) if kind == "unix" else tcp(joined, "127.0.0.1", int(where)))
    async with begun as server:
        await server.serve_forever()
asyncio.run(main())
"""


def unpacked(image: Path, folder: Path) -> Path:
    """The file system of an image of ours."""
    layout = read_layout(image)
    for layer in layout.manifest["layers"]:
        with tarfile.open(layout.blob(layer["digest"])) as archive:
            archive.extractall(folder, filter="tar")
    for name in ("proc", "run", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    return folder


class Space:
    """A network namespace, there as long as a process sleeps in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._started: list[subprocess.Popen[bytes]] = []
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = Path("/proc/self/ns/net").readlink()
        eventually_sync(lambda: Path(f"/proc/{self.pid}/ns/net").readlink() != own, "a network namespace")
        self.ip("link", "set", "lo", "up")

    @property
    def pid(self) -> int:
        return self._holder.pid

    def _words(self, words: tuple[str, ...]) -> list[str]:
        inside = ["unshare", "--mount", "sh", "-c", _INSIDE, str(self.root), *words]
        return ["nsenter", "-t", str(self.pid), "--net", *inside]

    def run(self, *words: str) -> str:
        """A program of the image; what it prints, whether it succeeds or not."""
        return subprocess.run(self._words(words), capture_output=True, text=True, check=False, timeout=120).stdout

    def must(self, *words: str) -> str:
        done = subprocess.run(self._words(words), capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ip(self, *words: str) -> None:
        self.must("ip", *words)

    def start(self, *words: str, log: Path | None = None, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        with log.open("wb") if log else contextlib.nullcontext(subprocess.DEVNULL) as out:
            begun = subprocess.Popen(self._words(words), stdout=out, stderr=out, env=env)
        self._started.append(begun)
        return begun

    def setting(self, path: str, value: str) -> None:
        line = f"echo {value} >/proc/sys/net/{path}"
        subprocess.run(["nsenter", "-t", str(self.pid), "--net", "sh", "-c", line], check=True)

    def lead(self, port: int, socket: Path) -> None:
        """A port of the loopback here leads to a server behind a socket in the file system."""
        words = [sys.executable, "-c", _FORWARD, f"tcp:{port}", f"unix:{socket}"]
        self._started.append(subprocess.Popen(["nsenter", "-t", str(self.pid), "--net", *words]))

    def end(self) -> None:
        for one in (*self._started, self._holder):
            one.kill()
            one.wait()


@contextlib.contextmanager
def behind_socket(port: int, socket: Path) -> Iterator[None]:
    """A server of this machine's loopback behind a socket in the file system."""
    begun = subprocess.Popen([sys.executable, "-c", _FORWARD, f"unix:{socket}", f"tcp:{port}"])
    try:
        eventually_sync(socket.exists, "a socket")
        yield
    finally:
        begun.kill()
        begun.wait()


class Node(Space):
    """A node: its bridge has the first address of its range."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(root)
        self.number = number
        self.name, self.address = f"node-{number}", f"192.0.2.{number + 1}"
        self.pods: dict[str, Space] = {}
        for setting in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
            self.setting(setting, "1")
        self.ip("link", "add", "cni0", "type", "bridge")
        self.ip("address", "add", f"{self._pod_address(1)}/24", "dev", "cni0")
        self.ip("link", "set", "cni0", "up")

    def _pod_address(self, last: int) -> str:
        return f"10.132.{self.number}.{last}"

    def join(self, other: Node) -> None:
        """A wire between two nodes, and the way to each other's pods."""
        self.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(other.pid))
        for one, far in ((self, other), (other, self)):
            one.ip("address", "add", f"{one.address}/24", "dev", "eth0")
            one.ip("link", "set", "eth0", "up")
            one.ip("route", "add", f"10.132.{far.number}.0/24", "via", far.address)

    def pod(self, name: str) -> str:
        """A pod on the bridge; gives its address."""
        space, address = Space(self.root), self._pod_address(len(self.pods) + 10)
        link = f"v{len(self.pods)}"
        self.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(space.pid))
        self.ip("link", "set", link, "master", "cni0")
        self.ip("link", "set", link, "up")
        space.ip("address", "add", f"{address}/24", "dev", "eth0")
        space.ip("link", "set", "eth0", "up")
        space.ip("route", "add", "default", "via", self._pod_address(1))
        self.pods[name] = space
        return address

    def end(self) -> None:
        for pod in self.pods.values():
            pod.end()
        super().end()
