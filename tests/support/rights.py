"""Rights and policies count a moment after they are written: a server reads both from caches that follow."""

from __future__ import annotations

from pathlib import Path

from tests.support.eventually import eventually

from hcp.kube import Client, Resource, load_config
from hcp.kube import resources as k

# One of each way to hold them: in the whole cluster, and in the operator's own namespace.
_OPERATORS: tuple[tuple[str, Resource, str | None], ...] = (
    ("list", k.HOSTEDCLUSTERS, None),
    ("create", k.NAMESPACES, None),
    ("create", k.LEASES, "hypershift"),
)


async def operators_count(kubeconfig: Path) -> None:
    """Wait until whoever has this kubeconfig has what `hcp install` gives the operator's account."""
    async with Client(load_config(kubeconfig)) as client:
        for verb, resource, namespace in _OPERATORS:

            async def may(verb: str = verb, resource: Resource = resource, namespace: str | None = namespace) -> bool:
                return await client.allowed(verb, resource, namespace)

            await eventually(may, f"the operator may {verb} {resource.plural}")
