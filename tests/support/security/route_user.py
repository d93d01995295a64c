"""Who attacks by Routes: somebody with every right in one namespace, and none elsewhere."""

from __future__ import annotations

import dataclasses
import secrets
from pathlib import Path

from tests.support.eventually import eventually

from hcp.kube import Client, load_config
from hcp.kube import resources as r

RBAC = "rbac.authorization.k8s.io"


async def namespace_owner(admin: Client, kubeconfig: Path) -> tuple[Client, str]:
    """A client that may do anything in a new namespace, and that namespace's name."""
    name = f"team-{secrets.token_hex(3)}"
    await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    inside = {"name": "owner", "namespace": name}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    await admin.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": inside, "rules": rules})
    await admin.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": inside,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "owner"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": name}],
        }
    )
    config = load_config(kubeconfig)
    client = Client(dataclasses.replace(config, auth=dataclasses.replace(config.auth, impersonate=name)))
    # The authorizer reads rights from a cache that follows.
    await eventually(lambda: client.allowed("create", r.ROUTES, name), "its rights count")
    return client, name
