"""The process on a node: the Node service, and the kubelet's question who is there."""

from __future__ import annotations

from pathlib import Path

from hcp.csi import rpc
from hcp.csi.identity import CONTROLLER_SERVICE, OFFLINE_EXPANSION, ONLINE_EXPANSION, Identity
from hcp.csi.kubevirt import DRIVER
from hcp.csi.kubevirt.node import commands
from hcp.csi.kubevirt.node.disks import Disks
from hcp.csi.kubevirt.node.service import NodeService
from hcp.csi.registration import PLUGINS, REGISTRY, Registration, registration_socket
from hcp.csi.serving import serving


async def serve(node: str, plugins: Path = PLUGINS, registry: Path = REGISTRY) -> None:
    """Runs until it is cancelled, or until the kubelet refuses it. Paths are the same here and for the kubelet."""
    commands.use_those_of_the_node()
    socket = plugins / DRIVER / "csi.sock"
    registration = Registration(DRIVER, socket)
    # What the driver as a whole can do, not this half of it.
    identity = Identity(DRIVER, (CONTROLLER_SERVICE, ONLINE_EXPANSION, OFFLINE_EXPANSION))
    services = {rpc.IDENTITY: identity, rpc.NODE: NodeService(node, Disks())}
    async with (
        serving(socket, services),
        serving(registration_socket(DRIVER, registry), {rpc.REGISTRATION: registration}),
    ):
        await registration.refused()
