"""An object store that checks signatures, on this machine: `rclone serve s3`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.eventually import eventually_sync

RCLONE = str(Path(sys.executable).with_name("rclone"))


@contextmanager
def serving(
    home: Path, port: int, access_key: str, secret_key: str, *, address: str = "127.0.0.1", before: Sequence[str] = ()
) -> Iterator[str]:
    """Every folder in `home` is a bucket; gives its address. `before`: words in front of the command line."""
    url = f"http://{address}:{port}"
    words = ("serve", "s3", "--addr", f"{address}:{port}", "--auth-key", f"{access_key},{secret_key}")
    command = [*before, RCLONE, *words, "--vfs-cache-mode", "off", "--config", "/dev/null", str(home)]
    process = subprocess.Popen(command)
    try:
        eventually_sync(lambda: process.poll() is not None or _answers(url), "the object store answers", 120)
        assert process.poll() is None
        yield url
    finally:
        process.kill()
        process.wait()


@contextmanager
def elsewhere(home: Path, access_key: str, secret_key: str) -> Iterator[str]:
    """On an address outside of this machine, so that nodes of embedded clusters reach it: the machine's own they do
    not. Needs root."""
    name = f"s3-{os.getpid()}"
    near, far = "198.18.21.1", "198.18.21.2"
    commands = (
        f"ip netns add {name}",
        f"ip link add {name} type veth peer name s3 netns {name}",
        f"ip address add {near}/30 dev {name}",
        f"ip link set {name} up",
        f"ip -n {name} address add {far}/30 dev s3",
        f"ip -n {name} link set s3 up",
        f"ip -n {name} route add default via {near}",
    )
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        with serving(home, 9000, access_key, secret_key, address=far, before=("ip", "netns", "exec", name)) as url:
            yield url
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def _answers(url: str) -> bool:
    with contextlib.suppress(urllib.error.HTTPError):  # it wants a signature, so it is there
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2)
    return True
