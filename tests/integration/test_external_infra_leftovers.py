"""A hosted cluster that goes takes what it has in an external infra cluster along, and nothing of its neighbours."""

from __future__ import annotations

from typing import Any

from tests.support.api_server import ApiServer
from tests.support.external_infra import HOME, VMS, prepare
from tests.support.machines import virtual_machine

from hcp.api.names import INFRA_CREDENTIALS, LABEL_INFRA_ID
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kubevirt import leftovers

Object = dict[str, Any]
HOSTED = f"{HOME}-demo"


def thing(kind: r.Resource, name: str, infra_id: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": VMS, "labels": {LABEL_INFRA_ID: infra_id}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}


async def test_machines_are_waited_for_and_the_policy_goes_last(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await prepare(client, own_server)
        platform = (await client.get(r.HOSTEDCLUSTERS, "demo", HOME))["spec"]["platform"]
        for infra_id in ("mine", "other"):
            await client.create(thing(r.SERVICES, f"{infra_id}-lb", infra_id, spec={"ports": [{"port": 80}]}))
            await client.create(thing(r.NETWORKPOLICIES, infra_id, infra_id, spec={"podSelector": {}}))
        # KubeVirt holds a machine until it has shut down.
        held = {"finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]}
        await client.create(virtual_machine("mine-1", VMS, labels={LABEL_INFRA_ID: "mine"}, **held))
        await client.create(virtual_machine("other-1", VMS, labels={LABEL_INFRA_ID: "other"}))

        async def left(kind: r.Resource) -> list[str]:
            found = (item["metadata"]["name"] for item in await client.list(kind, VMS, LABEL_INFRA_ID))
            return sorted(found)

        assert "VirtualMachine mine-1" in (await leftovers.clear(client, HOSTED, platform, "mine")).waiting
        assert await left(r.SERVICES) == ["other-lb"]
        assert await left(r.NETWORKPOLICIES) == ["mine", "other"]
        await client.patch(r.VIRTUALMACHINES, "mine-1", VMS, {"metadata": {"finalizers": None}})
        assert await leftovers.clear(client, HOSTED, platform, "mine") == leftovers.Left()
        assert await left(r.VIRTUALMACHINES) == ["other-1"]
        assert await left(r.NETWORKPOLICIES) == ["other"]


async def test_deletion_does_not_need_a_kubeconfig_that_is_gone(own_server: ApiServer) -> None:
    async with Client(load_config(own_server.kubeconfig)) as client:
        await prepare(client, own_server)
        platform = (await client.get(r.HOSTEDCLUSTERS, "demo", HOME))["spec"]["platform"]
        await client.delete(r.SECRETS, INFRA_CREDENTIALS, HOSTED)
        assert "not in the hosted namespace" in (await leftovers.clear(client, HOSTED, platform, "mine")).lost
        assert await leftovers.clear(client, HOSTED, {"kubevirt": {}}, "mine") == leftovers.Left()
        assert await leftovers.clear(client, HOSTED, platform, "x" * 64) == leftovers.Left()
