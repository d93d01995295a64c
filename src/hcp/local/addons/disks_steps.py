"""The steps of `up` that bring storage with snapshots up (`--with storage`)."""

from __future__ import annotations

from pathlib import Path

from hcp.api.manifests import Object
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.local.addons import disks, waiting
from hcp.local.addons.applying import apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references
from hcp.local.addons.virtualization import documents
from hcp.local.addons.virtualization_steps import apply_profile


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    if not ctx.layout.volumes.exists():
        raise HcpError(
            f"Cluster '{ctx.spec.name}' cannot have --with storage: its volumes are folders on the machine's disk",
            hint="It needs a kernel with btrfs and loop devices, and a cluster that was made with them.",
        )
    artifacts = await ctx.ensure((*disks.IMAGES, disks.DEFINITIONS))
    ctx.lap("storage built")
    images = {name: artifacts[name] for name in disks.IMAGES}
    wanted = [
        *definitions(artifacts[disks.DEFINITIONS]),
        *disks.objects(references(images), several=bool(ctx.spec.joined)),
    ]
    digest = digest_of(wanted)
    if ctx.done("storage", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    ctx.lap("storage pushed")
    await apply_all(client, wanted)
    await waiting.wait_ready(client, wanted, ctx.say)
    ctx.lap("storage ready")
    ctx.remember("storage", digest)
    return True


async def tell_cdi(ctx: Context, client: Client) -> bool:
    """What CDI may do with the class. Says whether anything had to be done."""
    digest = digest_of([disks.profile()])
    if ctx.done("storage profile", digest):
        return False
    await apply_profile(client, disks.profile())
    ctx.remember("storage profile", digest)
    return True


def definitions(artifact: Path) -> list[Object]:
    paths = sorted((artifact / "manifests" / "crds").glob("*.yaml"))
    return [obj for path in paths for obj in documents(path.read_text())]
