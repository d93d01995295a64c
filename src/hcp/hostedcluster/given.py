"""What the user gave beside the HostedCluster."""

from __future__ import annotations

from hcp.hostedcluster.releases import MissingInput
from hcp.hostedcluster.scope import Object, Scope
from hcp.kube.resources import SECRETS


async def secret(scope: Scope, name: str, key: str, hint: str = "Create it; the cluster goes on by itself.") -> Object:
    """A Secret that has this key."""
    ns = scope.params.cluster_namespace
    found = await scope.cache.user_object(SECRETS, name, ns)
    if found is None or not (found.get("data") or {}).get(key):
        raise MissingInput(f"The Secret {ns}/{name} with key {key} does not exist", hint=hint)
    return found
