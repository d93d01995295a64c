"""The process on a node: the Node service, and the kubelet's question who is there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hcp.csi import rpc
from hcp.csi.identity import CONTROLLER_SERVICE, OFFLINE_EXPANSION, ONLINE_EXPANSION, Identity
from hcp.csi.kubevirt import DRIVER
from hcp.csi.kubevirt.node import KNOWN_PORT, commands
from hcp.csi.kubevirt.node.disks import Disks
from hcp.csi.kubevirt.node.service import NodeService
from hcp.csi.registration import PLUGINS, REGISTRY, Registration, socket_of_this_boot
from hcp.csi.serving import serving

log = logging.getLogger(__name__)


async def serve(node: str, plugins: Path = PLUGINS, registry: Path = REGISTRY, known_port: int = KNOWN_PORT) -> None:
    """Runs until it is cancelled, or until the kubelet refuses it. Paths are the same here and for the kubelet."""
    commands.use_those_of_the_node()
    socket = plugins / DRIVER / "csi.sock"
    registration = Registration(DRIVER, socket)
    # What the driver as a whole can do, not this half of it.
    identity = Identity(DRIVER, (CONTROLLER_SERVICE, ONLINE_EXPANSION, OFFLINE_EXPANSION))
    services = {rpc.IDENTITY: identity, rpc.NODE: NodeService(node, Disks())}
    async with (
        serving(socket, services),
        serving(socket_of_this_boot(DRIVER, registry), {rpc.REGISTRATION: registration}),
        open_once(registration.registered, known_port),
    ):
        await registration.refused()


@asynccontextmanager
async def open_once(known: asyncio.Event, port: int) -> AsyncIterator[None]:
    """Accepts connections on the node itself from that moment on."""

    async def opened() -> None:
        await known.wait()
        try:
            server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)
        except OSError as error:
            log.error("nobody can be told that the kubelet knows the driver", extra={"port": port, "error": str(error)})
            return
        async with server:
            await server.serve_forever()

    task = asyncio.create_task(opened())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
