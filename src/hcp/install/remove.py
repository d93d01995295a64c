"""Taking an installation away again, without orphaning what it looks after."""

from __future__ import annotations

from collections.abc import Callable

from hcp.api import generate, names
from hcp.api.manifests import Object
from hcp.api.paths import annotations_of
from hcp.errors import HcpError
from hcp.install import manifests
from hcp.install.apply import gone
from hcp.install.options import Options
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import NotFound
from hcp.router import manifests as router

Say = Callable[[str], None]
NAMESPACE_TIMEOUT = 120.0
CRD_TIMEOUT = 60.0


async def hosted_clusters(client: Client) -> list[str]:
    """`namespace/name` of every hosted cluster there is."""
    try:
        found = await client.list(r.HOSTEDCLUSTERS)
    except NotFound:
        return []
    return sorted(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found)


async def remove(client: Client, *, force: bool, keep_crds: bool, say: Say) -> None:
    """Delete what install made, last things first. With hosted clusters left it refuses, or keeps the definitions."""
    left = await hosted_clusters(client)
    if left and not force:
        raise HcpError(
            f"{len(left)} hosted cluster(s) still exist: {', '.join(left)}",
            hint="destroy them first (hcp destroy cluster kubevirt), or use --force to remove the operator "
            "and leave them unattended",
        )
    options = Options()
    ours = await _our_router(client)
    objects = manifests.resources(Options(router=ours, admin_rbac=True), monitors=False)
    for obj in reversed(objects):
        await _delete(client, obj, say)
    if not await gone(client, r.NAMESPACES, options.namespace, None, NAMESPACE_TIMEOUT):
        raise HcpError(
            f"namespace {options.namespace} does not go away",
            hint=f"kubectl get namespace {options.namespace} -o yaml names what holds it; then run uninstall again",
            exit_code=3,
        )
    if left:
        say(f"kept the definitions and {len(left)} hosted cluster(s): nobody looks after them now")
        return
    if keep_crds:
        say("kept the definitions")
        return
    doomed = [crd["metadata"]["name"] for crd in generate.crds()]
    doomed += ["routes.route.openshift.io"] if ours else []
    doomed += await _machine_crds(client)
    for name in doomed:
        if await client.delete(r.CRDS, name, missing_ok=True) is not None:
            say(f"deleted CustomResourceDefinition /{name}")
    for name in doomed:
        if not await gone(client, r.CRDS, name, None, CRD_TIMEOUT):
            raise HcpError(
                f"the definition {name} does not go away", hint="objects with finalizers hold it", exit_code=3
            )


async def _our_router(client: Client) -> bool:
    found = await client.get_or_none(r.DEPLOYMENTS, router.NAME, names.ROUTER_NAMESPACE)
    return found is not None and manifests.INSTALLED in annotations_of(found)


async def _delete(client: Client, obj: Object, say: Say) -> None:
    namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
    try:
        await client.delete(await client.resource_for(obj), name, namespace, propagation="Background")
    except NotFound:
        return
    except HcpError as error:
        if obj["apiVersion"].startswith("route.openshift.io"):
            say(f"left Route {namespace}/{name}: {error}")
            return
        raise
    say(f"deleted {obj['kind']} {namespace or ''}/{name}")


async def _machine_crds(client: Client) -> list[str]:
    """Definitions of Cluster API that the operator brought along and that nobody has objects of."""
    found = []
    for crd in await client.list(r.CRDS, labels=f"{names.LABEL_MANAGED_BY}={names.MANAGED_BY}"):
        version = next(one["name"] for one in crd["spec"]["versions"] if one["storage"])
        kind = r.Resource(crd["spec"]["group"], version, crd["spec"]["names"]["plural"], crd["spec"]["names"]["kind"])
        if not await client.list(kind):
            found.append(crd["metadata"]["name"])
    return found
