"""The process beside a hosted control plane: the Controller service for sidecars, and the attacher."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from hcp.csi import rpc
from hcp.csi.exclusive import Exclusive
from hcp.csi.identity import CONTROLLER_SERVICE, OFFLINE_EXPANSION, ONLINE_EXPANSION, Identity
from hcp.csi.kubevirt import DRIVER, settings
from hcp.csi.kubevirt.attacher import Attacher
from hcp.csi.kubevirt.attaching import Attaching
from hcp.csi.kubevirt.controller_service import ControllerService
from hcp.csi.kubevirt.infra import PATIENCE, Infra
from hcp.csi.serving import serving
from hcp.kube import Client, ClusterConfig, untrusted_kubeconfig
from hcp.runtime.health import serve_health

log = logging.getLogger(__name__)


def infra_config(kubeconfig: Path | None) -> ClusterConfig:
    """The account of the pod, or the kubeconfig that the owner of an infra cluster gave."""
    if kubeconfig is None:
        return ClusterConfig.in_cluster()
    return untrusted_kubeconfig.load(kubeconfig.read_bytes(), "The kubeconfig of the infra cluster")


async def serve(
    infra_client: Client,
    guest: Client,
    given: settings.Settings,
    socket: Path,
    *,
    health_port: int = 0,
    patience: float = PATIENCE,
) -> None:
    """Runs until it is cancelled. What was begun is ended first: half a change is what the next process would find."""
    infra = Infra(infra_client, given, patience)
    attaching, busy = Attaching(infra), Exclusive()
    attacher = Attacher(guest, attaching, busy)
    identity = Identity(DRIVER, (CONTROLLER_SERVICE, ONLINE_EXPANSION, OFFLINE_EXPANSION))
    service = ControllerService(infra, attaching, busy)
    health = await serve_health(health_port, lambda: attacher.attachments.synced)
    try:
        async with serving(socket, {rpc.IDENTITY: identity, rpc.CONTROLLER: service}):
            await attacher.attachments.start()
            await attacher.controller.run()
    finally:
        await attacher.attachments.stop()
        await health.close()
        async with asyncio.timeout(5):
            await busy.settled()
