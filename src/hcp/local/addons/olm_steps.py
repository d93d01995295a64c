"""The step of `up` that brings operator-lifecycle-manager up (`--with olm`): the same as hosted clusters have."""

from __future__ import annotations

from hcp.guest import olm
from hcp.guest.catalogs import OLM_IMAGE, OPM_IMAGE, GuestCatalogs
from hcp.kube import Client
from hcp.local.addons import waiting
from hcp.local.addons.applying import apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.disks_steps import definitions
from hcp.local.addons.images import PREFIX, push, references

DEFINITIONS = "olm-definitions"
# This cluster has some kinds of config.openshift.io, so OLM takes it for OpenShift and waits for those it follows.
CONFIG = "openshift-definitions"
FOLLOWED = ("apiservers.config.openshift.io", "proxies.config.openshift.io")
IMAGES = (f"{PREFIX}{OLM_IMAGE}", f"{PREFIX}{OPM_IMAGE}")


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    artifacts = await ctx.ensure((*IMAGES, DEFINITIONS, CONFIG))
    ctx.lap("olm built")
    images = {name: artifacts[name] for name in IMAGES}
    refs = references(images)
    config = [one for one in definitions(artifacts[CONFIG]) if one["metadata"]["name"] in FOLLOWED]
    kinds = (*config, *definitions(artifacts[DEFINITIONS]))
    wanted = olm.parts(GuestCatalogs((), refs[OLM_IMAGE], refs[OPM_IMAGE], kinds, used=True), {})
    digest = digest_of(wanted)
    if ctx.done("olm", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    sent = await push(ctx.layout, images.values(), ctx.say)
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB of images to the cluster's registry")
    await apply_all(client, wanted)
    await waiting.wait_ready(client, wanted, ctx.say)
    ctx.lap("olm ready")
    ctx.remember("olm", digest)
    return True
