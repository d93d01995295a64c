"""The operator's image and the releases hosted clusters are made of, in the cluster's registry."""

from __future__ import annotations

from hcp.local.addons.applying import digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.images import push, references
from hcp.payload.published import OPERATOR, is_image, with_parts
from hcp.payload.release import with_storage


async def bring_up(ctx: Context) -> bool:
    """Says whether anything had to be done."""
    minors = ctx.request.releases_for(ctx.spec.profile)
    names = [OPERATOR, *(f"release-{minor}" for minor in minors)]
    if ctx.spec.has_storage:
        names += [with_storage(minor) for minor in minors]
    artifacts = await ctx.ensure(with_parts(names))
    ctx.lap("releases built")
    pushed = {name: path for name, path in artifacts.items() if is_image(path)}
    digest = digest_of([references(pushed)])
    if ctx.done("releases", digest):
        return False
    sent = await push(ctx.layout, pushed.values(), ctx.say)
    ctx.lap("releases pushed")
    if sent:
        ctx.say(f"  pushed {sent >> 20} MiB: the operator and releases {', '.join(minors)}")
    ctx.remember("releases", digest)
    return True
