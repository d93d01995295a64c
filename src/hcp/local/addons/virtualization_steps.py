"""The steps of `up` that bring KubeVirt and CDI up and wait until they are deployed."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from hcp.api.manifests import Object
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube.errors import ApiError, NotFound
from hcp.kube.resources import DEPLOYMENTS, MUTATING_POLICIES, MUTATING_POLICY_BINDINGS
from hcp.local.addons import emulation, virtualization, waiting
from hcp.local.addons.applying import MANAGER, apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references
from hcp.local.addons.order import Step, run_all
from hcp.local.host.checks import kvm
from hcp.payload.manifests import image_names, with_images
from hcp.runtime.workloads import rolled_out

KUBEVIRTS = Resource("kubevirt.io", "v1", "kubevirts", "KubeVirt", True)
CDIS = Resource("cdi.kubevirt.io", "v1beta1", "cdis", "CDI", False)
STORAGE_PROFILES = Resource("cdi.kubevirt.io", "v1beta1", "storageprofiles", "StorageProfile", False)
_PATIENCE = 900.0
_AGAIN = "Running up again continues."


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    artifacts = await ctx.ensure(virtualization.COMPONENTS)
    texts = {name: virtualization.manifest(path) for name, path in artifacts.items()}
    names = sorted({image for text in texts.values() for image in image_names(text)})
    images = await ctx.ensure(f"image-{name}" for name in names)
    ctx.lap("KubeVirt and CDI built")
    refs = references(images)
    usable, why = kvm()
    wanted = [virtualization.kubevirt(emulation=not usable), virtualization.cdi(), *virtualization.direct_imports()]
    wanted += [] if usable else emulation.without_slow_instructions()
    manifests = [with_images(texts[name], refs) for name in sorted(texts)]
    digest = digest_of([{"revision": virtualization.REVISION, "manifests": manifests}, *wanted])
    if ctx.done("virtualization", digest) and await _deployed(client):
        return False
    how = f"KVM: {why}" if usable else f"software emulation: {why}"
    ctx.say(f"  virtual machines will use {how}")
    await _install(ctx, client, {name: with_images(text, refs) for name, text in texts.items()}, wanted, images)
    await client.apply(wanted[0], manager=MANAGER)
    if usable:  # a folder that was on another machine before
        await client.delete(MUTATING_POLICY_BINDINGS, emulation.NAME, missing_ok=True)
        await client.delete(MUTATING_POLICIES, emulation.NAME, missing_ok=True)
    ctx.remember("virtualization", digest)
    return True


async def _install(
    ctx: Context, client: Client, texts: dict[str, str], wanted: list[Object], images: dict[str, Path]
) -> None:
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    ctx.lap("KubeVirt and CDI pushed")
    operators = [obj for text in texts.values() for obj in virtualization.documents(text)]
    await apply_all(client, operators)
    await apply_all(client, [*wanted[1:], await for_now(client, wanted[0])])
    ctx.lap("KubeVirt and CDI applied")
    namespace = virtualization.KUBEVIRT_NAMESPACE
    await run_all(
        [
            Step("KubeVirt", partial(_phase, client, KUBEVIRTS, "kubevirt", namespace, ctx)),
            Step("CDI", partial(_phase, client, CDIS, "cdi", None, ctx)),
            Step("disks", partial(apply_profile, client, virtualization.storage_profile()), ("CDI",)),
            Step("machines", partial(_machines_taken, client, ctx), ("disks",)),
        ]
    )
    ctx.lap("KubeVirt and CDI ready")


async def _machines_taken(client: Client, ctx: Context) -> bool:
    """Says when machines can be made. Some seconds later nodes can run them, in which disks are filled already."""
    namespace = virtualization.KUBEVIRT_NAMESPACE

    async def running() -> bool:
        found = await client.get_or_none(DEPLOYMENTS, virtualization.CONTROLLER, namespace)
        return found is not None and rolled_out(found)

    async def failure() -> HcpError:
        trouble = await waiting.namespace_trouble(client, namespace)
        return HcpError(f"{virtualization.CONTROLLER} did not become ready", cause=trouble, hint=_AGAIN)

    await waiting.until(running, _PATIENCE, failure)
    ctx.say(virtualization.MACHINES_TAKEN)
    return True


async def for_now(client: Client, kubevirt: Object) -> Object:
    """A KubeVirt that was never there begins without its types of instances; another keeps them."""
    found = await client.get_or_none(KUBEVIRTS, "kubevirt", virtualization.KUBEVIRT_NAMESPACE)
    if found is not None and at(found, "status.phase") == "Deployed":
        return kubevirt
    return virtualization.without_instance_types(kubevirt)


async def _phase(client: Client, resource: Resource, name: str, ns: str | None, ctx: Context) -> bool:
    seen: Object = {}

    async def deployed() -> bool:
        seen.update(await client.get(resource, name, ns))
        return is_deployed(seen)

    async def failure() -> HcpError:
        conditions = seen.get("status", {}).get("conditions") or []
        said = "; ".join(item.get("message", "") for item in conditions if item.get("message"))
        trouble = await waiting.namespace_trouble(client, ns or virtualization.CDI_NAMESPACE)
        return HcpError(
            f"{resource.kind} did not reach phase Deployed",
            cause=trouble or said or None,
            hint=_AGAIN,
        )

    await waiting.until(deployed, _PATIENCE, failure)
    ctx.say(f"  {resource.kind} is Deployed")
    return True


def is_deployed(obj: Object) -> bool:
    status = obj.get("status") or {}
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    return status.get("phase") == "Deployed" and conditions.get("Available") == "True"


async def _deployed(client: Client) -> bool:
    try:
        found = await asyncio.gather(
            client.get(KUBEVIRTS, "kubevirt", virtualization.KUBEVIRT_NAMESPACE), client.get(CDIS, "cdi")
        )
    except NotFound:
        return False
    return all(is_deployed(obj) for obj in found)


async def apply_profile(client: Client, profile: Object) -> bool:
    """CDI makes the object itself; we add to it, and its webhook may need a moment."""
    last: list[str] = []

    async def applied() -> bool:
        try:
            await client.apply(profile, manager="hcp-local")
        except ApiError as error:
            last[:] = [str(error)]
            return False
        return True

    async def failure() -> HcpError:
        return HcpError("CDI did not take the profile of the storage class", cause=last[0] if last else None)

    await waiting.until(applied, 60.0, failure)
    return True
