"""Machines whose owner has more on them: what is changed before a cluster comes up, what it has to say, and undoing.

The cluster is stopped before and started after, so that it finds them as they are. Pure, but for the checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.hosts.machine import Machine
from tests.hosts.settings import ADDRESS, OUTSIDE_NAME
from tests.hosts.story import HCP, need
from tests.support.eventually import eventually_sync


@dataclass(frozen=True)
class Variant:
    name: str
    change: tuple[str, ...]
    undo: tuple[str, ...]
    meanwhile: Callable[[Machine], None]
    """After the cluster came up, before a pod asks for the outside."""
    afterwards: Callable[[Machine], None] = lambda machine: None
    """After the cluster was stopped, before the change is undone."""


def _rule(machine: Machine) -> None:
    need("-j HCP-0" in machine.run("iptables -S DOCKER-USER"), "Docker's chain leads to the cluster's")
    need("-P FORWARD DROP" in machine.run("iptables -S FORWARD"), "everything else is dropped")


def _no_rule(machine: Machine) -> None:
    need("HCP" not in machine.run("iptables -S"), "no rule of ours is left in Docker's tables")


def _resolved(machine: Machine) -> None:
    need("127.0.0.53" in machine.run("cat /etc/resolv.conf"), "the machine's resolver is on its loopback")
    need(OUTSIDE_NAME in machine.run(f"resolvectl query {OUTSIDE_NAME}"), "and it answers")


def _zone(machine: Machine) -> None:
    """It is told, with the command that helps; that is what its owner types then."""
    advice = "firewall-cmd --zone=trusted --add-interface=hcp0"
    told = machine.run(f"{HCP} local status", check=False)
    need("firewalld" in told and advice in told, f"hcp local status names firewalld and says {advice}")
    machine.run(advice)


def _firewalld_runs(machine: Machine) -> None:
    eventually_sync(lambda: "running" in machine.run("firewall-cmd --state", check=False), "firewalld runs", 300)


# Docker's own way to begin, without Docker: its chain for users' rules, and a policy that drops the rest.
_DOCKER = Variant(
    "docker",
    (
        "iptables -N DOCKER-USER",
        "iptables -N DOCKER-FORWARD",
        "iptables -A FORWARD -j DOCKER-USER",
        "iptables -A FORWARD -j DOCKER-FORWARD",
        "iptables -P FORWARD DROP",
    ),
    ("iptables -P FORWARD ACCEPT", "iptables -F", "iptables -X"),
    _rule,
    _no_rule,
)
_RESOLVED = Variant(
    "resolved",
    (
        f"mkdir -p /etc/systemd/resolved.conf.d && printf '[Resolve]\\nDNS={ADDRESS}\\nDNSSEC=no\\n' "
        ">/etc/systemd/resolved.conf.d/host.conf",
        "systemctl start systemd-resolved",
        "ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf",
    ),
    (f"rm /etc/resolv.conf && echo nameserver {ADDRESS} >/etc/resolv.conf", "systemctl stop systemd-resolved"),
    _resolved,
)
_FIREWALLD = Variant("firewalld", ("systemctl start firewalld",), ("systemctl stop firewalld",), _zone)

ALL = {variant.name: variant for variant in (_DOCKER, _RESOLVED, _FIREWALLD)}
