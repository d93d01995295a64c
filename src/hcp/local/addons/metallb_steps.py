"""The step of `up` that brings MetalLB up (`--with metallb`)."""

from __future__ import annotations

from hcp.api.manifests import Object
from hcp.kube import Client
from hcp.local.addons import metallb, waiting
from hcp.local.addons.applying import apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references
from hcp.local.state import parts

_BEFORE = ("CustomResourceDefinition", "Namespace")


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    artifacts = await ctx.ensure((*metallb.IMAGES, metallb.MANIFESTS))
    ctx.lap("metallb built")
    images = {name: artifacts[name] for name in metallb.IMAGES}
    manifest = (artifacts[metallb.MANIFESTS] / "manifests" / "metallb-native.yaml").read_text()
    wanted = metallb.objects(manifest, references(images), parts.version(metallb.MANIFESTS))
    pool = metallb.pool(ctx.spec.addresses)
    digest = digest_of([*wanted, pool])
    if ctx.done("metallb", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    await _pool_first(client, wanted, pool)
    await apply_all(client, wanted)
    await waiting.wait_ready(client, wanted, ctx.say)
    ctx.lap("metallb ready")
    ctx.remember("metallb", digest)
    return True


async def _pool_first(client: Client, wanted: list[Object], pool: Object) -> None:
    """A controller that finds no pool takes every address away, and one that runs has to be asked about pools."""
    kinds = [obj for obj in wanted if obj["kind"] in _BEFORE]
    name, namespace = pool["metadata"]["name"], pool["metadata"]["namespace"]
    live = await client.get_or_none(metallb.POOLS, name, namespace)
    if live is None or any(live["spec"].get(key) != value for key, value in pool["spec"].items()):
        await apply_all(client, [*kinds, pool])
