"""A machine whose firewall drops what it forwards: Docker's, with iptables itself, and others that are only told.

The machine is a network namespace with a node, the outside and one of Docker's networks as others, and real packets.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.local_networks import Networks
from tests.support.network_nodes import unpacked

from hcp import payload

LINK, NODE, OUTSIDE, CONTAINER = "hcp29", "10.88.29.2", "198.51.100.2", "172.17.0.2"
_CALL = "import sys; from pathlib import Path; from hcp.local.host import docker, forwarding; print({})"


class Machine(Networks):
    """`node`, `machine` as ever; `pod` is the outside here, and one more namespace is a container of Docker's."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.container = self.node.replace("node", "container")
        self.tools = payload.ensure(["node-tools"])["node-tools"]
        root = unpacked(payload.ensure(["image-kube-router"])["image-kube-router"] / "image", folder / "root")
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name in ("iptables", "ip6tables", "iptables-restore", "ip6tables-restore"):
            (self.programs / name).write_text(f'#!/bin/sh\nexec chroot {root} {name} "$@"\n')
            (self.programs / name).chmod(0o755)

    def iptables(self, *words: str) -> str:
        return self.run(self.machine, str(self.programs / "iptables"), *words)

    def nft(self, text: str) -> None:
        self.run(self.machine, str(self.tools / "bin" / "nft"), "-f", "-", stdin=text)

    def hcp(self, expression: str) -> str:
        """What hcp does on that machine."""
        path = f"{self.programs}:{os.environ['PATH']}"
        return self.run(self.machine, "env", f"PATH={path}", sys.executable, "-c", _CALL.format(expression))

    def troubles(self) -> str:
        return self.hcp(f"forwarding.troubles('{LINK}', [Path('{self.tools}')])")

    def end(self) -> None:
        super().end()
        subprocess.run(["ip", "netns", "delete", self.container], check=False, stderr=subprocess.DEVNULL)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    here, node, outside, container = made.machine, made.node, made.pod, made.container
    commands = [
        *(f"ip netns add {name}" for name in (here, node, outside, container)),
        f"ip -n {here} link add {LINK} type veth peer name eth0 netns {node}",
        # The outside is behind the link of the default route, as behind a network card.
        f"ip -n {here} link add wire type veth peer name eth0 netns {outside}",
        f"ip -n {here} link add docker0 type bridge",
        f"ip -n {here} link add v0 master docker0 type veth peer name eth0 netns {container}",
        f"ip -n {here} address add 10.88.29.1/24 dev {LINK}",
        f"ip -n {here} address add 198.51.100.1/24 dev wire",
        f"ip -n {here} address add 172.17.0.1/16 dev docker0",
        f"ip -n {node} address add {NODE}/24 dev eth0",
        f"ip -n {outside} address add {OUTSIDE}/24 dev eth0",
        f"ip -n {container} address add {CONTAINER}/16 dev eth0",
        *(f"ip -n {name} link set eth0 up" for name in (node, outside, container)),
        *(f"ip -n {here} link set {name} up" for name in ("lo", LINK, "wire", "docker0", "v0")),
        f"ip -n {here} route add default via {OUTSIDE}",
        f"ip -n {node} route add default via 10.88.29.1",
        f"ip -n {outside} route add default via 198.51.100.1",
        f"ip -n {container} route add default via 172.17.0.1",
    ]
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        made.run(here, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        made.serve(outside, 80)
        made.serve(container, 80)
        made.serve(node, 80)
        yield made
    finally:
        made.end()


def as_docker_does(machine: Machine) -> None:
    for line in (
        "-P FORWARD DROP",
        "-N DOCKER-USER",
        "-A DOCKER-USER -j RETURN",
        "-A FORWARD -j DOCKER-USER",
        "-A FORWARD -i docker0 -o docker0 -j ACCEPT",
    ):
        machine.iptables(*line.split())


def reached(machine: Machine) -> dict[str, bool]:
    return {
        "out": machine.opens(machine.node, NODE, OUTSIDE, 80),
        "in": machine.opens(machine.pod, OUTSIDE, NODE, 80),
        "containers": machine.opens(machine.node, NODE, CONTAINER, 80),
    }


def test_docker_lets_nodes_out_and_nobody_in_until_the_cluster_goes(machine: Machine) -> None:
    assert machine.troubles().strip() == "[]"
    as_docker_does(machine)
    before = machine.iptables("-S")
    assert reached(machine) == {"out": False, "in": False, "containers": False}
    assert "hcp local up again" in machine.troubles()
    for _ in range(2):
        machine.hcp(f"docker.let_through('{LINK}')")
        assert machine.iptables("-S", "DOCKER-USER").count("HCP-29") == 1
    assert reached(machine) == {"out": True, "in": False, "containers": False}
    assert machine.troubles().strip() == "[]"
    for _ in range(2):
        machine.hcp(f"docker.take_back('{LINK}')")
        assert machine.iptables("-S") == before


def test_without_docker_iptables_is_told_and_left_alone(machine: Machine) -> None:
    machine.iptables("-P", "FORWARD", "DROP")
    before = machine.iptables("-S")
    machine.hcp(f"docker.let_through('{LINK}')")
    assert machine.iptables("-S") == before
    told = machine.troubles()
    assert "chain FORWARD" in told
    for words in told.partition("Allow it: ")[2].strip("]'\"\n").split("; "):
        machine.iptables(*words.split()[1:])
    assert reached(machine)["out"] and machine.troubles().strip() == "[]"


def test_a_table_of_somebody_else_s_is_told_and_what_is_told_works(machine: Machine) -> None:
    machine.nft("table inet mine { chain through { type filter hook forward priority filter; policy drop; }; }\n")
    assert not reached(machine)["out"]
    told = machine.troubles()
    assert "inet mine through" in told
    way = told.partition("Allow it there: ")[2].strip("]'\"\n")
    machine.nft(way.replace("nft ", "").replace("; ", "\n") + "\n")
    assert reached(machine) == {"out": True, "in": False, "containers": True}
    assert machine.troubles().strip() == "[]"


def test_firewalld_is_told_until_it_knows_the_link(machine: Machine) -> None:
    machine.nft("table inet firewalld { chain zones { type filter hook forward priority 10; policy accept; }; }\n")
    assert f"--add-interface={LINK}" in machine.troubles()
    machine.nft(f'add rule inet firewalld zones iifname "{LINK}" accept\n')
    assert machine.troubles().strip() == "[]"
