"""Who attacks: a team's account that may work with hosted clusters in its own namespace, and what it makes there."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support import crds as crds_support
from tests.support.api_server import ApiServer, account_token
from tests.support.eventually import eventually

from hcp.kube import Client, ClusterConfig
from hcp.kube import resources as k
from hcp.kube.config import UserAuth

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Attacker:
    """A namespace, and a client that may write HostedClusters, NodePools, Secrets and ConfigMaps in it."""

    client: Client
    namespace: str
    token: str

    def hosted(self, name: str) -> str:
        """The namespace of a hosted control plane, where the attacker has no rights at all."""
        return f"{self.namespace}-{name}"

    async def secret(self, name: str, **data: str | bytes) -> Object:
        content = {key.replace("__", "."): _b64(value) for key, value in data.items()}
        metadata = {"name": name, "namespace": self.namespace}
        return await self.client.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": content}, manager="attacker"
        )

    async def cluster(self, name: str, **changes: Any) -> Object:
        """A HostedCluster as the command line makes one; `changes` are fields of its spec."""
        await self.secret(f"{name}-pull-secret", __dockerconfigjson='{"auths":{}}')
        wanted = crds_support.rendered_cluster(self.namespace, name)
        wanted["spec"] |= {
            "infraID": f"{name}-{secrets.token_hex(3)}",
            "pullSecret": {"name": f"{name}-pull-secret"},
            "release": {"image": "127.0.0.1:1/release:1.36.3"},
            "secretEncryption": {"type": "aescbc", "aescbc": {"activeKey": {"name": f"{name}-etcd-encryption-key"}}},
            **changes,
        }
        return await self.client.create(wanted)

    async def condition(self, name: str, kind: str, resource: k.Resource = k.HOSTEDCLUSTERS) -> Object:
        """What the attacker is told."""
        live = await self.client.get_or_none(resource, name, self.namespace)
        conditions = ((live or {}).get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == kind), {})


async def enter(admin: Client, server: ApiServer, name: str = "") -> Attacker:
    """A namespace with an account in it: a new one, or one of this name."""
    name = name or f"team-{secrets.token_hex(3)}"
    await admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    inside = {"name": "team", "namespace": name}
    await admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside})
    rules = [
        {"apiGroups": ["hypershift.openshift.io"], "resources": ["hostedclusters", "nodepools"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"]},
    ]
    await admin.apply({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": inside, "rules": rules})
    await admin.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "team"},
            "subjects": [{"kind": "ServiceAccount", **inside}],
        }
    )
    token = await account_token(admin, "team", name)
    ca = (server.directory / "ca.crt").read_bytes()
    client = Client(ClusterConfig(server.url, ca_pem=ca, auth=UserAuth(token=token)))
    for resource in (k.HOSTEDCLUSTERS, k.SECRETS):
        # The authorizer reads rights from a cache that follows.
        await eventually(partial(client.allowed, "create", resource, name), "its rights count")
    return Attacker(client, name, token)


def _b64(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
