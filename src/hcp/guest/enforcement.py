"""When NetworkPolicies are enforced inside a guest: from the first one on, and until the last is gone for a while.

Whoever replaces a policy may delete the old one first, and starting on an emulated node takes half a minute: so the
firewall stays for some time without any. Nothing is written while nothing changes.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from hcp.guest import network_policy
from hcp.guest.objects import SYSTEM, GuestParams
from hcp.guest.policy_stage import Stage
from hcp.guest.view import GuestView
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, DAEMONSETS, NETWORKPOLICIES, SERVICEACCOUNTS
from hcp.runtime.workloads import rolled_out

# How long the firewall outlives the last policy.
LINGER = 300.0


@dataclass
class Policies:
    """What is known of one guest."""

    stage: Stage = Stage.OFF
    # Since when there is no policy; None: there is one, or nobody looked.
    since: float | None = None


async def follow(client: Client, view: GuestView, params: GuestParams, known: Policies) -> None:
    """Bring `known` up to what the guest shows; takes the last of it away when every node is free of rules."""
    if not network_policy.possible(params) or not (view.nodes.list() or view.policies.synced):
        return
    await view.follow_policies()
    live = view.daemons.get(network_policy.NAME, SYSTEM)
    if view.policies.list():
        known.stage, known.since = Stage.ENFORCING, None
    elif live is None:
        known.stage, known.since = Stage.OFF, None
    elif not network_policy.is_ending(live):
        if known.since is None:
            known.since = time.monotonic()
        late = time.monotonic() - known.since >= LINGER
        known.stage = Stage.ENDING if late and not await _any(client) else Stage.ENFORCING
    elif rolled_out(live) or not view.nodes.list():
        await _remove(client)
        known.stage, known.since = Stage.OFF, None
    else:
        known.stage = Stage.ENDING


async def _any(client: Client) -> bool:
    """Asked once before it ends: only so many policies are followed."""
    async with contextlib.aclosing(client.pages(NETWORKPOLICIES, size=1)) as pages:
        async for page, _ in pages:
            return bool(page)
    return False


async def _remove(client: Client) -> None:
    """The DaemonSet goes last: it is what makes us come here again."""
    for resource in (CLUSTERROLEBINDINGS, CLUSTERROLES):
        await client.delete(resource, network_policy.ROLE, missing_ok=True)
    for resource in (SERVICEACCOUNTS, DAEMONSETS):
        with contextlib.suppress(NotFound):
            await client.delete(resource, network_policy.NAME, SYSTEM)
