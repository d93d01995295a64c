"""The driver's process: all its services on one socket, and the socket on which the kubelet asks who is there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from hcp.csi import identity, rpc
from hcp.csi.exclusive import Exclusive
from hcp.csi.local.controller import Controller
from hcp.csi.local.names import DRIVER, loop_label
from hcp.csi.local.node import Node
from hcp.csi.local.pool import Pool
from hcp.csi.registration import Registration
from hcp.csi.serving import serving

CAPABILITIES = (identity.CONTROLLER_SERVICE, identity.ONLINE_EXPANSION)


async def serve(folder: Path, node: str, socket: Path, registration: Path | None = None) -> None:
    """Until the task is cancelled. `registration` is a socket in the kubelet's folder; without it none is told."""
    pool = Pool(folder, loop_label(node))
    await asyncio.to_thread(pool.prepare)
    busy = Exclusive()
    services = {
        rpc.IDENTITY: identity.Identity(DRIVER, CAPABILITIES),
        rpc.CONTROLLER: Controller(pool, busy),
        rpc.NODE: Node(pool, busy, node),
    }
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(socket, services))
        stack.push_async_callback(busy.settled)
        known = Registration(DRIVER, socket)
        if registration is not None:
            await stack.enter_async_context(serving(registration, {rpc.REGISTRATION: known}))
        await known.refused()
