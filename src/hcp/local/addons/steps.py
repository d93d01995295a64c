"""The part of `up` that speaks to the API server, in the order in which things become usable.

Each step states all that shall be there and applies it; running it again finds nothing to do.
"""

from __future__ import annotations

import asyncio

from hcp.kube import Client, load_config
from hcp.local.addons import (
    core,
    disks_steps,
    metallb_steps,
    mirrors_steps,
    olm_steps,
    releases,
    virtualization_steps,
    waiting,
)
from hcp.local.addons.context import Context


def bring_up(ctx: Context) -> bool:
    """Everything above the processes. Says whether anything had to be done."""
    return asyncio.run(_bring_up(ctx))


async def _bring_up(ctx: Context) -> bool:
    async with Client(load_config(ctx.layout.kubeconfig), user_agent="hcp-local") as client:
        if ctx.began is not None and not await waiting.pods_restarted(client, ctx.spec, ctx.began):
            ctx.say("  some pods from before are not running again; kubectl get pods -A shows them")
        changed = await core.bring_up(ctx, client)
        if changed:
            ctx.say(f"Usable now: pods, Services, volumes and Routes at {ctx.spec.server}")
        if ctx.spec.has_metallb:
            changed = await metallb_steps.bring_up(ctx, client) or changed
        if ctx.spec.has_storage:
            changed = await disks_steps.bring_up(ctx, client) or changed
        if ctx.spec.has_mirrors:
            changed = await mirrors_steps.bring_up(ctx, client) or changed
        if ctx.spec.has_olm:
            changed = await olm_steps.bring_up(ctx, client) or changed
        if ctx.spec.profile == "kubevirt":
            changed = await virtualization_steps.bring_up(ctx, client) or changed
            if ctx.spec.has_storage:
                changed = await disks_steps.tell_cdi(ctx, client) or changed
        if ctx.request.releases_for(ctx.spec.profile):
            changed = await releases.bring_up(ctx) or changed
    return changed
