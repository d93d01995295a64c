"""External infra without the right to read its networks: the policy is there all the same, and everybody is told."""

from __future__ import annotations

from typing import Any

from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import HOME, VMS, prepare
from tests.support.guides import documents
from tests.support.node_pools import condition, running_operator

from hcp.kube import Client, load_config
from hcp.kube import resources as r

Object = dict[str, Any]


async def test_unknown_networks_are_said_and_heal(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await prepare(client, own_server)

        async def policy() -> Object:
            return (await client.list(r.NETWORKPOLICIES, VMS))[0]

        async def verdict(status: str) -> str:
            found = condition(await client.get(r.HOSTEDCLUSTERS, "demo", HOME), "ValidKubeVirtInfraNetworkPolicyRBAC")
            assert found["status"] == status, found
            return str(found["reason"])

        async def events() -> list[Object]:
            return [e for e in await client.list(r.EVENTS, VMS) if e["reason"] == "InsufficientNetworkPolicyRBAC"]

        async with running_operator(own_server.kubeconfig):
            # Machines cannot be kept off networks that nobody may know, but there is a policy.
            world = (await eventually(policy))["spec"]["egress"][0]["to"][0]["ipBlock"]
            assert world == {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}
            assert await eventually(lambda: verdict("False")) == "InfraClusterNetworkReadFailed"
            [event] = await eventually(events)
            assert event["type"] == "Warning"
            await client.create(documents.network_reader())
            await client.create(documents.network_reader_binding(VMS))

            async def healed() -> bool:
                # Nothing tells us of rights elsewhere; any change of the cluster has us look again.
                await client.patch(r.HOSTEDCLUSTERS, "demo", HOME, {"spec": {"channel": "x"}})
                await client.patch(r.HOSTEDCLUSTERS, "demo", HOME, {"spec": {"channel": "y"}})
                return await verdict("True") == "AsExpected"

            assert await eventually(healed)
            assert "10.128.0.0/14" in str((await policy())["spec"]["egress"])

            # Nodes of the management cluster, which the account of the infra cluster does not see, are closed too.
            await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "home"}})
            status = {"addresses": [{"type": "InternalIP", "address": "192.0.2.77"}]}
            await client.patch(r.NODES, "home", None, {"status": status}, subresource="status")

            async def closed() -> bool:
                world = (await policy())["spec"]["egress"][0]["to"][0]["ipBlock"]
                return "192.0.2.77/32" in world["except"]

            assert await eventually(closed)
