"""The part of `up` that speaks to the API server.

Each step states all that shall be there and applies it; running it again finds nothing to do.
"""

from __future__ import annotations

import asyncio
from functools import partial

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
from hcp.local.addons.order import Step, run_all

NODE, CORE, VIRTUALIZATION = "node", "core", "virtualization"


def bring_up(ctx: Context) -> bool:
    """Everything above the processes. Says whether anything had to be done."""
    return asyncio.run(_bring_up(ctx))


async def _bring_up(ctx: Context) -> bool:
    async with Client(load_config(ctx.layout.kubeconfig), user_agent="hcp-local") as client:
        if ctx.began is not None and not await waiting.pods_restarted(client, ctx.spec, ctx.began):
            ctx.say("  some pods from before are not running again; kubectl get pods -A shows them")
        return await run_all(steps(ctx, client))


def steps(ctx: Context, client: Client) -> list[Step]:
    """What there is to do, and what each needs. KubeVirt takes minutes to start, in which all else is done."""
    spec = ctx.spec
    found = [Step(NODE, partial(core.node, ctx, client))]
    if ctx.request.until_node:
        return found
    found.append(Step(CORE, partial(core.bring_up, ctx, client), (NODE,)))
    extras = {
        "metallb": (spec.has_metallb, metallb_steps),
        "storage": (spec.has_storage, disks_steps),
        "mirrors": (spec.has_mirrors, mirrors_steps),
        "olm": (spec.has_olm, olm_steps),
    }
    before = CORE
    for name, (wanted, module) in extras.items():
        if wanted:  # one after the other, as each may have much to build
            found.append(Step(name, partial(module.bring_up, ctx, client), (before,)))
            before = name
    if spec.profile == "kubevirt":
        found.append(Step(VIRTUALIZATION, partial(virtualization_steps.bring_up, ctx, client), (NODE,)))
        if spec.has_storage:
            found.append(Step("CDI", partial(disks_steps.tell_cdi, ctx, client), ("storage", VIRTUALIZATION)))
    if ctx.request.releases_for(spec.profile):
        # The largest builds, and nothing of the cluster waits for them.
        found.append(Step("releases", partial(releases.bring_up, ctx), (before, VIRTUALIZATION)))
    return found
