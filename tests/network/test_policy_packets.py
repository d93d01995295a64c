"""kube-router itself, as hosted clusters run it, between pods of two nodes: each policy leaves exactly what it says.

The API server is real, the packets are too; nodes and pods are network namespaces. On machines the same is asked by
tests/e2e/test_network_policy.py.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually, eventually_sync
from tests.support.network_nodes import Node, behind_socket, unpacked
from tests.support.policy_matrix import CLIENTS, OPEN, PORTS, SERVERS, Matrix, cases, namespaces, targets
from tests.support.unit.controlplane import IMAGES, params

from hcp import payload
from hcp.guest import network_policy
from hcp.guest.objects import GuestParams
from hcp.guest.policy_stage import Stage
from hcp.kube import Client, load_config
from hcp.kube import resources as k

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


def _container(stage: Stage, kind: str) -> dict[str, Any]:
    """What a hosted cluster runs."""
    images = {**IMAGES, network_policy.IMAGE: "-"}
    made = GuestParams(params(), images=images, own_network=True, highly_available=False, policies=stage)
    (found,) = [one for one in network_policy.objects(made) if one["kind"] == "DaemonSet"]
    container: dict[str, Any] = found["spec"]["template"]["spec"][kind][0]
    return container


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    image = payload.ensure(["image-kube-router"])["image-kube-router"] / "image"
    made = unpacked(image, tmp_path_factory.mktemp("kube-router"))
    (made / "www").mkdir()
    (made / "www" / "hello").write_text("hello\n")
    return made


@pytest.fixture(scope="module")
def nodes(root: Path, shared_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    socket = tmp_path_factory.mktemp("api") / "socket"
    (root / "kubeconfig").write_text(shared_server.kubeconfig.read_text())
    made = [Node(root, 0), Node(root, 1)]
    try:
        with behind_socket(shared_server.port, socket):
            made[0].join(made[1])
            for node in made:
                node.lead(shared_server.port, socket)
            yield made
    finally:
        for node in made:
            node.end()


@pytest.fixture(scope="module")
def addresses(nodes: list[Node]) -> dict[str, str]:
    found = {name: nodes[where].pod(name) for name, (_, where) in {**SERVERS, **CLIENTS}.items()}
    for server, (_, where) in SERVERS.items():
        for port in PORTS:
            nodes[where].pods[server].start("busybox", "httpd", "-f", "-p", str(port), "-h", "/www")
    return found


@pytest.fixture
async def api(shared_server: ApiServer, nodes: list[Node], addresses: dict[str, str]) -> AsyncIterator[Client]:
    """The same nodes and pods as the API knows them."""
    async with Client(load_config(shared_server.kubeconfig)) as client:
        for space in namespaces():
            await client.apply(space)
        for node in nodes:
            await client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
            status = {"addresses": [{"type": "InternalIP", "address": node.address}]}
            await client.patch(k.NODES, node.name, None, {"status": status}, subresource="status")
        for name, (ns, where) in {**SERVERS, **CLIENTS}.items():
            spec = {"nodeName": nodes[where].name, "containers": [{"name": "one", "image": "-"}]}
            metadata = {"name": name, "namespace": ns, "labels": {"app": name}}
            await client.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            at = {"podIP": addresses[name], "podIPs": [{"ip": addresses[name]}], "hostIP": nodes[where].address}
            await client.patch(k.PODS, name, ns, {"status": {"phase": "Running", **at}}, subresource="status")
        yield client


def reached(nodes: list[Node], addresses: dict[str, str]) -> Matrix:
    line = "; ".join(
        f"busybox timeout 10 wget -q -O /dev/null http://{where}/hello 2>/dev/null && echo {name}"
        for name, where in targets(addresses).items()
    )

    def one(client: str) -> set[str]:
        return set(nodes[CLIENTS[client][1]].pods[client].run("sh", "-c", line).split())

    with ThreadPoolExecutor(len(CLIENTS)) as pool:
        return dict(zip(CLIENTS, pool.map(one, CLIENTS), strict=True))


def enforcing(nodes: list[Node], logs: Path) -> list[subprocess.Popen[bytes]]:
    """The firewall on every node, with the command and the environment of its container."""
    command = _container(Stage.ENFORCING, "containers")["command"]
    begun = []
    for node in nodes:
        env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NODE_NAME": node.name}
        begun.append(node.start(*command, "--kubeconfig=/kubeconfig", log=logs / f"{node.name}.log", env=env))
    return begun


async def test_each_policy_leaves_exactly_what_it_says_and_the_end_leaves_nothing(
    nodes: list[Node], addresses: dict[str, str], api: Client, tmp_path: Path
) -> None:
    eventually_sync(lambda: reached(nodes, addresses) == OPEN, "all pods speak with each other", 120)
    begun = enforcing(nodes, tmp_path)
    known: set[tuple[str, str]] = set()
    for name, (policies, wanted) in cases(addresses).items():
        now = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in policies}
        for ns, old in known - now:
            await api.delete(k.NETWORKPOLICIES, old, ns)
        for one in policies:
            await api.apply(one)
        known = now
        seen: list[Matrix] = []

        async def holds(wanted: Matrix = wanted, seen: list[Matrix] = seen) -> bool:
            seen.append(reached(nodes, addresses))
            return seen[-1] == wanted

        try:
            await eventually(holds, name, seconds=180)
        except AssertionError as error:
            said = "\n".join((tmp_path / f"{node.name}.log").read_text()[-1500:] for node in nodes)
            raise AssertionError(f"{name}: wanted {wanted}, seen last {seen[-1:]}\n{said}") from error

    # A restart opens nothing: rules stay while nobody looks after them.
    for firewall in begun:
        firewall.kill()
        firewall.wait()
    assert reached(nodes, addresses) == wanted

    clean = _container(Stage.ENDING, "initContainers")["command"]
    for node in nodes:
        assert "KUBE-ROUTER" in node.must("iptables-save")
        node.must(*clean)
        left = node.must("iptables-save") + node.must("ip6tables-save") + node.must("ipset", "list", "-name")
        assert "KUBE-" not in left, left
        node.must(*clean)
    assert reached(nodes, addresses) == OPEN
    for ns, old in known:
        await api.delete(k.NETWORKPOLICIES, old, ns)
