"""A hosted cluster whose machines run in another cluster: the same API server by another name, or one of its own."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import yaml
from tests.support import crds as crds_support
from tests.support import node_pools as support
from tests.support.api_server import ApiServer, account_token
from tests.support.guides import documents

from hcp.api.names import INFRA_CREDENTIALS
from hcp.kube import Client
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
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    kubeconfig = await account(client, server)
    secret = {"name": "demo-infra-credentials", "key": "kubeconfig"}
    credentials = {"infraNamespace": VMS, "infraKubeConfigSecret": secret}
    await support.hosted_cluster(client, HOME, server.kubeconfig, credentials=credentials)
    data = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
    metadata = {"name": INFRA_CREDENTIALS, "namespace": f"{HOME}-demo"}
    await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


async def account(client: Client, server: ApiServer, rights: Sequence[documents.Rule] = documents.NEWER_RIGHTS) -> str:
    """The kubeconfig of somebody with these rights in the namespace `vms`, and no others; the guide's, if none."""
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VMS}})
    await client.create(documents.infra_role(VMS, rights))
    who = {"kind": "ServiceAccount", "name": documents.ACCOUNT, "namespace": VMS}
    await client.create(
        {
            "apiVersion": f"{documents.RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "machines", "namespace": VMS},
            "roleRef": {"apiGroup": documents.RBAC, "kind": "Role", "name": documents.ROLE},
            "subjects": [who],
        }
    )
    await client.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": documents.ACCOUNT, "namespace": VMS}}
    )
    kubeconfig = yaml.safe_load(server.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": await account_token(client, documents.ACCOUNT, VMS)}
    return yaml.safe_dump(kubeconfig)


async def asked_by(client: Client, kubeconfig: str, hosted: str) -> None:
    """The kubeconfig where the operator keeps it: in the hosted namespace of the management cluster."""
    await client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hosted}})
    metadata = {"name": INFRA_CREDENTIALS, "namespace": hosted}
    await client.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"kubeconfig": kubeconfig}}
    )
