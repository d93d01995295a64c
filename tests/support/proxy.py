"""A real proxy with a password, and a network namespace from which nothing else can be reached."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.api_server import free_port

from hcp import payload

USER, PASSWORD = "me", "s.cret-1"
OUTSIDE, INSIDE = "198.18.77.1", "198.18.77.2"


@dataclass
class Proxy:
    """`names` are known to the proxy alone: this machine's DNS has none of them."""

    port: int
    log: Path
    namespace: str

    @property
    def url(self) -> str:
        return f"http://{USER}:{PASSWORD}@{OUTSIDE}:{self.port}"

    @property
    def without_login(self) -> str:
        return f"http://{OUTSIDE}:{self.port}"

    @property
    def inside(self) -> tuple[str, ...]:
        """The beginning of a command that runs where only the proxy can be reached."""
        return ("ip", "netns", "exec", self.namespace)

    def asked_for(self, place: str) -> int:
        """How often it was asked to connect there."""
        return self.log.read_text().count(f"CONNECT {place} ")


@contextmanager
def running(folder: Path, *names: str) -> Iterator[Proxy]:
    """`names` lead to this machine, if one asks the proxy."""
    namespace, port = f"hcp-proxy-{os.getpid()}", free_port()
    program = payload.ensure(["test-proxy"])["test-proxy"] / "bin" / "tinyproxy"
    hosts, log, config = folder / "hosts", folder / "proxy.log", folder / "proxy.conf"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
    log.write_text("")
    config.write_text(
        f'Port {port}\nListen {OUTSIDE}\nTimeout 600\nMaxClients 100\nLogFile "{log}"\nLogLevel Connect\n'
        f"BasicAuth {USER} {PASSWORD}\n"
    )
    with _namespace(namespace):
        bind = 'mount --bind "$1" /etc/hosts && exec "$2" -d -c "$3"'
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", bind, "sh", hosts, program, config])
        try:
            _listens(port, process)
            yield Proxy(port, log, namespace)
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def _namespace(name: str) -> Iterator[None]:
    """Joined to this machine by one link, without a route to anywhere else and without DNS."""
    link = f"hcpx{os.getpid()}"
    commands = [
        f"ip netns add {name}",
        f"ip link add {link} type veth peer name way-out netns {name}",
        f"ip address add {OUTSIDE}/30 dev {link}",
        f"ip link set {link} up",
        f"ip -n {name} address add {INSIDE}/30 dev way-out",
        f"ip -n {name} link set way-out up",
        f"ip -n {name} link set lo up",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        yield
    finally:
        subprocess.run(["ip", "link", "delete", link], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def _listens(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, "the proxy ended"
        with suppress(OSError):
            socket.create_connection((OUTSIDE, port), 1).close()
            return
        time.sleep(0.05)
