"""What the tour runs in a hosted cluster, as an API server takes it."""

from __future__ import annotations

from tests.support.api_server import ApiServer

from hcp.controlplane.storage_plan import DEFAULT_CLASS
from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.local.demo import workload


async def test_claims_are_part_of_it_where_a_default_class_serves_them(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        assert not await workload._has_volumes(client)
        for one in workload.manifests("registry.example/image:1"):
            await client.apply(one, manager="hcp-demo")
        assert [one["metadata"]["name"] for one in await client.list(k.DEPLOYMENTS, "default")] == ["hello"]

        made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "csi.example.com"}
        await client.create({**made, "metadata": {"name": "named"}})
        assert not await workload._has_volumes(client), "a claim without a class would wait for ever"
        await client.create({**made, "metadata": {"name": "usual", "annotations": {DEFAULT_CLASS: "true"}}})
        assert await workload._has_volumes(client)
        for _ in range(2):  # a tour that is run again
            for one in workload.manifests("registry.example/image:1", claims=True):
                await client.apply(one, manager="hcp-demo")
        [live] = await client.list(k.STATEFULSETS, "default")
        assert live["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"] == {"storage": "64Mi"}
