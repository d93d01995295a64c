"""A tenant has its API server call webhooks, conversions and issuers by URL, inside the management cluster.

Here: what the policies say, and that they follow the cluster. The packets are in tests/e2e/security.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from tests.support import management as s
from tests.support.eventually import eventually
from tests.support.security.attacker import Attacker

from hcp.kube import Client
from hcp.kube import resources as k

Object = dict[str, Any]


async def policy(admin: Client, attacker: Attacker, name: str) -> Object | None:
    return await admin.get_or_none(k.NETWORKPOLICIES, name, attacker.hosted("mine"))


def lets_through(made: Object, address: str) -> bool:
    """Whether any address block of a policy has the address."""
    wanted = ipaddress.ip_address(address)
    blocks = [peer["ipBlock"] for rule in made["spec"]["egress"] for peer in rule["to"] if "ipBlock" in peer]
    for block in blocks:
        inside = wanted in ipaddress.ip_network(block["cidr"])
        if inside and not any(wanted in ipaddress.ip_network(hole) for hole in block.get("except") or []):
            return True
    return False


async def add_node(admin: Client, name: str, address: str, cidr: str) -> None:
    await admin.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}
    )
    addresses = [{"type": "InternalIP", "address": address}]
    await admin.patch(k.NODES, name, None, {"status": {"addresses": addresses}}, subresource="status")


async def test_networks_of_the_management_cluster_are_closed_to_control_planes(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess
) -> None:
    await add_node(admin, "infra-1", "192.0.2.10", "10.244.0.0/24")
    await attacker.cluster("mine", labels={"hypershift.openshift.io/need-management-kas-access": "true", "team": "a"})

    async def closed(*addresses: str) -> bool:
        made = await policy(admin, attacker, "component-egress")
        return made is not None and not any(lets_through(made, address) for address in addresses)

    [services] = (await admin.list(k.SERVICECIDRS))[0]["spec"]["cidrs"]
    service = str(ipaddress.ip_network(services)[1])
    assert await eventually(lambda: closed("192.0.2.10", "10.244.0.7", service, "169.254.169.254", "fe80::1"))
    made = await eventually(lambda: policy(admin, attacker, "component-egress"))
    assert lets_through(made, "198.51.100.1") and lets_through(made, "2001:db8::1")  # an issuer outside
    assert made["spec"]["podSelector"]["matchExpressions"][0]["key"].endswith("/control-plane-component")
    # A node that joins later, with pods of its own.
    await add_node(admin, "infra-2", "192.0.2.77", "10.244.9.0/24")
    assert await eventually(lambda: closed("192.0.2.77", "10.244.9.7"))


async def test_the_label_that_opens_the_management_api_is_not_the_users_to_give(
    admin: Client, attacker: Attacker, operator: s.OperatorProcess
) -> None:
    label = "hypershift.openshift.io/need-management-kas-access"
    await attacker.cluster("mine", labels={label: "true", "kubevirt.io": "virt-launcher", "team": "a"})

    async def named() -> Object | None:
        found = await attacker.condition("mine", "AllFieldsHonoured")
        return found if found.get("status") == "False" and label in found["message"] else None

    told = await eventually(named)
    assert "labels[kubevirt.io]" in told["message"] and "team" not in told["message"]
    api = await eventually(lambda: policy(admin, attacker, "management-kas"))
    assert api["spec"]["podSelector"] == {"matchLabels": {label: "true"}}
    assert all(rule.get("ports") for rule in api["spec"].get("egress") or [])
