"""What a cluster changes on the machine itself: one link, one route, one nftables table, a few kernel settings, and
where Docker runs a chain of exceptions (host/docker.py).

The link, its addresses and the route end with the cluster's network namespace. The kernel settings are shared by all
clusters: the first one that comes up notes the old values, the last one that goes down puts them back.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.local.host import docker, programs
from hcp.local.host.checks import inotify_limits
from hcp.local.host.resolvers import machine_nameservers
from hcp.local.network.addresses import Stack
from hcp.local.network.addresses6 import Addresses6
from hcp.local.network.firewall import machine_rules
from hcp.local.state.locks import exclusive
from hcp.local.state.nodes import Node, first
from hcp.local.state.spec import Spec, write_file

_NOTES = Path("/run/hcp-local.json")
_NOTES_LOCK = Path("/run/hcp-local.lock")
_MAX_MTU = 1500


def connect(node: Node, pid: int, tools: list[Path]) -> None:
    """Joins the network namespace of process `pid` to the machine, and to the other nodes."""
    spec, plan = node.spec, node.plan
    hold_settings(spec.name, six=plan.six is not None)
    mtu = str(outside_mtu())
    _ip("link", "add", node.link, "mtu", mtu, "type", "veth", "peer", "name", "eth0", "mtu", mtu, "netns", str(pid))
    for stack in node.links:
        _address(node, stack)
    _ip("link", "set", node.link, "up")
    for stack in node.links:
        if node.is_first:
            # The registry is on the node's loopback: by IPv6 it does not say on its link that it has it.
            beyond = [stack.load_balancers, *([stack.registry] if isinstance(stack, Addresses6) else [])]
            for range_ in beyond:
                _ip("route", "replace", range_, "via", stack.node, "dev", plan.link, "onlink")
        else:
            _ip("route", "replace", stack.node_of(node.index), "dev", node.link)
    if node.is_first:
        _nft(machine_rules(_table(spec), plan, machine_nameservers()), tools)
    else:
        _lead_pods(node)
    if spec.joined and Path(f"/sys/class/net/{plan.link}").exists():
        _lead_pods(first(spec))


def _lead_pods(node: Node) -> None:
    """Pods of other nodes come by way of the machine; those of a single node stay unknown to it."""
    for stack in node.links:
        ways = ("via", stack.node_of(node.index), "dev", node.link, "onlink")
        _ip("route", "replace", stack.pods_of(node.index), *ways)


def _address(node: Node, stack: Stack) -> None:
    """Our end of the link. Nobody else is on it, so that nobody is asked whether the address is free."""
    six = isinstance(stack, Addresses6)
    wire, single = (64, 128) if six else (24, 32)
    more = ("nodad",) if six else ()
    _ip("address", "add", f"{stack.host}/{wire if node.is_first else single}", "dev", node.link, *more)


def outside_mtu() -> int:
    """The largest packet that leaves this machine: pods must not send larger ones to the outside."""
    done = subprocess.run(
        [programs.ip(), "-j", "route", "show", "default"], check=False, capture_output=True, text=True
    )
    with contextlib.suppress(ValueError, LookupError, OSError):
        device = json.loads(done.stdout)[0]["dev"]
        return min(_MAX_MTU, int(Path(f"/sys/class/net/{device}/mtu").read_text()))
    return _MAX_MTU


def disconnect(node: Node, tools: list[Path]) -> None:
    """Takes back everything `connect` did. Safe when some or all of it is already gone."""
    link = Path(f"/sys/class/net/{node.link}")
    if link.exists():
        try:
            _ip("link", "delete", link.name)
        except HcpError:
            if link.exists():  # it may have ended with its namespace just now
                raise
    if node.is_first:
        docker.take_back(node.link)
        remove_rules(node.spec, tools)
        release_settings(node.spec.name)


def remove_rules(spec: Spec, tools: list[Path]) -> None:
    for family in ("ip", "ip6") if spec.addresses.six else ("ip",):
        with contextlib.suppress(HcpError):
            _nft(f"table {family} {_table(spec)}\ndelete table {family} {_table(spec)}\n", tools)


def _table(spec: Spec) -> str:
    return f"hcp_local_{spec.addresses.number}"


def _nft(rules: str, tools: list[Path]) -> None:
    try:
        done = subprocess.run(
            ["nft", "-f", "-"],
            input=rules,
            check=False,
            capture_output=True,
            text=True,
            env=programs.environment(tools),
        )
    except FileNotFoundError:
        raise HcpError("The command nft is missing", hint="Install it: apt-get install nftables") from None
    if done.returncode != 0:
        raise HcpError(
            "The kernel refused an nftables rule that lets pods reach the outside",
            cause=done.stderr.strip().splitlines()[0] if done.stderr.strip() else None,
            hint="The kernel needs nf_tables with NAT: modprobe nft_masq",
        )


def hold_settings(name: str, *, six: bool = False) -> None:
    """Raises the kernel settings that are too low, in the name of a cluster (or of who else needs them)."""
    with exclusive(_NOTES_LOCK):
        notes = _read_notes()
        wanted = [(Path("/proc/sys/net/ipv4/ip_forward"), 1), *(_six_settings() if six else ()), *inotify_limits()]
        for path, value in wanted:
            old = path.read_text().strip()
            if int(old) < value:
                notes["old"].setdefault(str(path), old)
                path.write_text(str(value))
        notes["clusters"] = sorted({*notes["clusters"], name})
        write_file(_NOTES, json.dumps(notes))


def _six_settings() -> list[tuple[Path, int]]:
    """Forwarding. A machine that forwards forgets the routers that announced themselves to it, and listens to none any
    more, unless its links are told to: those that listen now go on.
    """
    links = Path("/proc/sys/net/ipv6/conf")
    if (links / "all" / "forwarding").read_text().strip() != "0":
        return []
    listening = [path for path in sorted(links.glob("*/accept_ra")) if path.read_text().strip() == "1"]
    return [*((path, 2) for path in listening), (links / "all" / "forwarding", 1)]


def release_settings(name: str) -> None:
    """Puts the settings back when nobody holds them any more."""
    if not _NOTES.exists():
        return
    with exclusive(_NOTES_LOCK):
        notes = _read_notes()
        notes["clusters"] = [other for other in notes["clusters"] if other != name]
        if notes["clusters"]:
            write_file(_NOTES, json.dumps(notes))
            return
        for path, old in notes["old"].items():
            with contextlib.suppress(OSError):
                Path(path).write_text(old)
        _NOTES.unlink(missing_ok=True)
        _NOTES_LOCK.unlink(missing_ok=True)


def _read_notes() -> dict[str, Any]:
    try:
        notes = json.loads(_NOTES.read_text())
    except (OSError, ValueError):
        notes = {}
    return {"old": notes.get("old", {}), "clusters": notes.get("clusters", [])}


def _ip(*arguments: str) -> None:
    done = subprocess.run([programs.ip(), *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise HcpError(
            f"The machine refused a change of its network: ip {' '.join(arguments)}", cause=done.stderr.strip()
        )
