"""External infra without the right to read its networks: the policy is there all the same, and everybody is told."""

from __future__ import annotations

import base64
from typing import Any

import yaml
from tests.support import crds as crds_support
from tests.support import node_pools as support
from tests.support.api_server import ApiServer, account_token
from tests.support.guides import documents
from tests.support.node_pools import condition, eventually, running_operator

from hcp.api.names import INFRA_CREDENTIALS
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.local.addons import config as openshift_config

Object = dict[str, Any]
HOME, VMS = "tenants", "vms"


async def prepare(client: Client, server: ApiServer) -> None:
    """A hosted cluster whose machines go to the namespace `vms`, with the guide's Role there and no more."""
    await support.prepare(client)
    await crds_support.install(client, openshift_config.definitions())
    network = {"clusterNetwork": [{"cidr": "10.128.0.0/14"}], "serviceNetwork": ["172.30.0.0/16"]}
    config = {"apiVersion": "config.openshift.io/v1", "kind": "Network", "metadata": {"name": "cluster"}}
    await client.create({**config, "spec": network, "status": network})
    for name in (HOME, VMS):
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await client.create(documents.infra_role(VMS))
    account = {"kind": "ServiceAccount", "name": documents.ACCOUNT, "namespace": VMS}
    await client.create(
        {
            "apiVersion": f"{documents.RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "machines", "namespace": VMS},
            "roleRef": {"apiGroup": documents.RBAC, "kind": "Role", "name": documents.ROLE},
            "subjects": [account],
        }
    )
    secret = {"name": "demo-infra-credentials", "key": "kubeconfig"}
    credentials = {"infraNamespace": VMS, "infraKubeConfigSecret": secret}
    await support.hosted_cluster(client, HOME, server.kubeconfig, credentials=credentials)
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    await client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": documents.ACCOUNT, "namespace": VMS}}
    )
    kubeconfig["users"][0]["user"] = {"token": await account_token(client, documents.ACCOUNT, VMS)}
    data = {"kubeconfig": base64.b64encode(yaml.safe_dump(kubeconfig).encode()).decode()}
    metadata = {"name": INFRA_CREDENTIALS, "namespace": f"{HOME}-demo"}
    await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


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
