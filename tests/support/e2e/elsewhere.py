"""A registry on another machine: in a network namespace of its own, reached by way of this machine only."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.registry import Registry, start

from hcp.local.host import programs
from hcp.local.state import spec
from hcp.local.state.layout import Layout
from hcp.local.supervisor import control

_NAME, _LINK = "hcp-elsewhere", "hcpelse0"
_HERE, _THERE = "10.99.77.1", "10.99.77.2"


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run([str(programs.ip()), *words], check=check, capture_output=True)


@contextmanager
def registry_elsewhere(folder: Path) -> Iterator[Registry]:
    """With TLS by a CA of its own and a password."""
    _ip("netns", "delete", _NAME, check=False)
    _ip("netns", "add", _NAME)
    try:
        _ip("link", "add", _LINK, "type", "veth", "peer", "name", "eth0", "netns", _NAME)
        _ip("address", "add", f"{_HERE}/30", "dev", _LINK)
        _ip("link", "set", _LINK, "up")
        for words in (
            ("address", "add", f"{_THERE}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", _HERE),
        ):
            _ip("-n", _NAME, *words)
        inside = (str(programs.ip()), "netns", "exec", _NAME)
        made, process = start(folder, passwords=True, port=5000, address=_THERE, inside=inside)
        try:
            yield made
        finally:
            process.kill()
            process.wait()
    finally:
        _ip("netns", "delete", _NAME)


def trust(cluster: str, registry: Registry, folder: Path, *, only: bool) -> None:
    """As the owner of the nodes would: containerd knows this registry's CA. `only`: and the embedded one's no more."""
    places = Layout.of(cluster).etc / "certs.d"
    for known in places.iterdir() if only else ():
        (known / "hosts.toml").write_text(f'server = "https://{known.name}"\n')
    authority = folder / "node-ca.pem"
    authority.write_bytes(registry.ca_pem)
    (places / registry.host).mkdir()
    (places / registry.host / "hosts.toml").write_text(
        f'server = "https://{registry.host}"\n\n[host."https://{registry.host}"]\n  ca = "{authority}"\n'
    )


def cut_off(cluster: str) -> None:
    """From now on the cluster reaches the registry elsewhere and nothing else: whatever leaves it goes nowhere."""
    layout = Layout.of(cluster)
    found, plan = control.running(layout), spec.load(layout)
    assert found is not None and plan is not None, "the cluster is not running"
    inside = ["nsenter", "-t", str(found.pid), "-n", str(programs.ip())]
    assert f"via {plan.addresses.host} " in _way_out(inside), "there was no way out to begin with"
    for words in (
        # The kernel looks for a route before Services are translated, so there has to be one.
        ("link", "add", "nowhere", "type", "bridge"),
        ("link", "set", "nowhere", "up"),
        ("route", "add", f"{_THERE}/32", "via", plan.addresses.host),
        ("route", "replace", "default", "dev", "nowhere"),
    ):
        subprocess.run([*inside, *words], check=True, capture_output=True)
    assert "dev nowhere " in _way_out(inside), "the way out is still there"


def _way_out(inside: list[str]) -> str:
    """How a packet to anywhere in the world would leave."""
    done = subprocess.run([*inside, "route", "get", "198.51.100.1"], check=True, capture_output=True, text=True)
    return done.stdout
