"""Which addresses a node of a cluster with IPv6 tells its kubelet, on a real link in a network namespace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hcp.ignition.node_addresses import script

SPACE = f"hcp-addresses-{os.getpid()}"


@pytest.fixture
def link() -> Iterator[str]:
    commands = [f"ip netns add {SPACE}", f"ip -n {SPACE} link add eth0 type veth peer name other"]
    commands += [f"ip -n {SPACE} link set {name} up" for name in ("other", "eth0")]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        yield SPACE
    finally:
        subprocess.run(["ip", "netns", "delete", SPACE], check=False)


def said(folder: Path, *families: str) -> str:
    path = folder / "node-addresses.sh"
    path.write_text(script(families))
    path.chmod(0o755)
    return subprocess.run(
        ["ip", "netns", "exec", SPACE, "sh", str(path)], check=True, capture_output=True, text=True
    ).stdout.strip()


def give(*addresses: str) -> None:
    for one in addresses:
        more = ["nodad"] if ":" in one else []
        subprocess.run(["ip", "-n", SPACE, "address", "add", one, "dev", "eth0", *more], check=True)


def test_one_address_of_each_family_in_the_clusters_order(link: str, tmp_path: Path) -> None:
    give("192.0.2.5/24", "192.0.2.6/24", "2001:db8::5/64")
    assert said(tmp_path, "4", "6") == "NODE_ADDRESSES=--node-ip=192.0.2.5,2001:db8::5"
    assert said(tmp_path, "6", "4") == "NODE_ADDRESSES=--node-ip=2001:db8::5,192.0.2.5"
    assert said(tmp_path, "6") == "NODE_ADDRESSES=--node-ip=2001:db8::5"


def test_a_family_that_is_not_there_is_not_named(link: str, tmp_path: Path) -> None:
    """Addresses of the wire are none that others could use."""
    assert said(tmp_path, "4", "6") == ""
    give("192.0.2.5/24")
    assert said(tmp_path, "4", "6") == "NODE_ADDRESSES=--node-ip=192.0.2.5"
