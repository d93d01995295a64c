"""What doctor says about MetalLB, with the definitions of its project on a real API server."""

from __future__ import annotations

import pytest
from tests.support import crds as crds_support
from tests.support import definitions
from tests.support.api_server import ApiServer
from tests.support.guides import documents

from hcp.kube import Client, load_config
from hcp.kube.errors import Invalid
from hcp.preflight import metallb, platform

NAMESPACE = "metallb-system"


async def said(server: ApiServer) -> tuple[str, str]:
    """By a client of its own: what a cluster serves is remembered."""
    async with Client(load_config(server.kubeconfig)) as client:
        found = await platform.load_balancer(client)
    return found.state, found.message


async def test_pools_and_their_advertisements_are_what_counts(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        assert (await said(own_server))[0] == "warning"
        await crds_support.install(client, definitions.metallb())
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        state, message = await said(own_server)
        assert state == "warning" and "no pool" in message
        kept = {**documents.metallb()[1], "spec": {"addresses": ["192.0.2.0/28"], "autoAssign": False}}
        await client.create({**kept, "metadata": {"name": "kept", "namespace": NAMESPACE}})
        assert (await said(own_server))[0] == "warning", "it gives nothing unasked"

        # The guide's own documents, as its project defines the kinds.
        _, pool, advertisement = documents.metallb()
        await client.create(pool)
        state, message = await said(own_server)
        assert state == "warning" and "pool metallb are announced by nobody" in message
        await client.create(advertisement)
        state, message = await said(own_server)
        assert state == "ok" and "no Service uses it yet" in message

        service = await client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "lb", "namespace": "default"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 1}]},
            }
        )
        state, message = await said(own_server)
        assert state == "failed" and "none of 1 Services has one" in message
        service["metadata"]["annotations"] = {"metallb.io/ip-allocated-from-pool": "metallb"}
        service["status"] = {"loadBalancer": {"ingress": [{"ip": "192.168.216.32"}]}}
        served = await client.replace(service, subresource="status")
        assert metallb.gave(served), "MetalLB says so by the same request"
        assert await said(own_server) == ("ok", "MetalLB gives them out of the pool metallb; 1 of 1 Services have one")

        # Somebody else gives addresses too: pools are not what counts.
        await client.delete(metallb.POOLS, "metallb", NAMESPACE)
        assert (await said(own_server))[0] == "warning"
        other = {**service, "metadata": {"name": "other", "namespace": "default"}}
        other["spec"] = {"type": "LoadBalancer", "ports": [{"port": 1}]}
        made = await client.create({key: value for key, value in other.items() if key != "status"})
        await client.replace({**made, "status": service["status"]}, subresource="status")
        assert await said(own_server) == ("ok", "2 of 2 Services have one")


async def test_a_pool_without_addresses_is_refused_by_its_definition(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await crds_support.install(client, definitions.metallb())
        empty = {**documents.metallb()[1], "metadata": {"name": "empty", "namespace": "default"}, "spec": {}}
        with pytest.raises(Invalid):
            await client.create(empty)
