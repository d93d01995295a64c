"""A namespace user publishes by node port under any address, so that its machines may reach that address."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp.kube import Client
from hcp.kube import resources as k

Object = dict[str, Any]
NODE = "192.0.2.10"


def services(address: str, port: int = 0) -> list[Object]:
    block = {"address": address, **({"port": port} if port else {})}
    return [
        {"service": name, "servicePublishingStrategy": {"type": "NodePort", "nodePort": block}}
        for name in ("APIServer", "Konnectivity", "Ignition", "OAuthServer")
    ]


@pytest.fixture
async def node(admin: Client) -> Object:
    """A node of the management cluster."""
    await admin.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "infra-1"}, "spec": {}})
    addresses = [{"type": "InternalIP", "address": NODE}, {"type": "Hostname", "address": "infra-1"}]
    return await admin.patch(k.NODES, "infra-1", None, {"status": {"addresses": addresses}}, subresource="status")


async def policy(admin: Client, attacker: Attacker, name: str) -> Object | None:
    return await admin.get_or_none(k.NETWORKPOLICIES, "virt-launcher", attacker.hosted(name))


def single(rules: list[Object]) -> dict[str, list[int]]:
    """Which single addresses are opened, with their ports."""
    opened: dict[str, list[int]] = {}
    for rule in rules:
        for peer in rule["to"]:
            cidr = (peer.get("ipBlock") or {}).get("cidr", "")
            if cidr.endswith(("/32", "/128")):
                opened.setdefault(cidr, []).extend(port["port"] for port in rule["ports"])
    return opened


@pytest.mark.parametrize("address", ["10.128.0.7", "169.254.169.254", "192.0.2.99", "localhost"])
async def test_an_address_that_no_node_has_stays_closed(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess, node: Object, address: str
) -> None:
    await attacker.cluster("mine", services=services(address))

    async def named() -> Object | None:
        found = await attacker.condition("mine", "ValidNodePortAddresses")
        return found if found.get("status") == "False" and address in found["message"] else None

    assert (await eventually(named))["reason"] == "NotANodeAddress"

    async def closed() -> bool:
        """Once the node is known too."""
        made = await policy(admin, attacker, "mine") or {}
        assert set(single(made["spec"]["egress"])) == {"169.254.20.10/32"}  # a DNS cache of nodes, port 53
        everywhere = made["spec"]["egress"][0]["to"][0]["ipBlock"]
        return f"{NODE}/32" in everywhere["except"] and "169.254.0.0/16" in everywhere["except"]

    await eventually(closed, "it stays closed")


async def test_a_node_is_opened_at_the_node_ports_and_at_no_other(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess, node: Object
) -> None:
    await attacker.cluster("mine", services=services(NODE))

    async def both() -> bool:
        made, hosted = await policy(admin, attacker, "mine"), attacker.hosted("mine")
        names = {"kube-apiserver": hosted, "konnectivity-server": hosted, "ignition-server-node-port": "hypershift"}
        given = [await admin.get(k.SERVICES, name, where) for name, where in names.items()]
        wanted = sorted(service["spec"]["ports"][0]["nodePort"] for service in given)
        return single((made or {})["spec"]["egress"])[f"{NODE}/32"] == wanted

    assert await eventually(both)

    async def said() -> bool:
        return bool((await attacker.condition("mine", "ValidNodePortAddresses"))["status"] == "True")

    assert await eventually(said)
