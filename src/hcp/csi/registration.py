"""How the kubelet learns of a node's driver: it finds a socket in its folder of plugins and asks who is there.

The kubelet looks again when it starts and when the socket appears anew, so both may restart at any time.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from hcp.csi.wire import registration_pb2 as wire
from hcp.errors import HcpError

log = logging.getLogger(__name__)
CSI_VERSIONS = ("1.0.0",)
PLUGINS = Path("/var/lib/kubelet/plugins")
REGISTRY = Path("/var/lib/kubelet/plugins_registry")


def registration_socket(driver: str, registry: Path = REGISTRY) -> Path:
    return registry / f"{driver}-reg.sock"


class Registration:
    """`endpoint` is the driver's own socket by its path on the node, as the kubelet sees it."""

    def __init__(self, driver: str, endpoint: Path) -> None:
        self.driver = driver
        self.endpoint = endpoint
        self.registered = asyncio.Event()
        self._refused: asyncio.Future[str] | None = None

    async def get_info(self, _request: wire.InfoRequest) -> wire.PluginInfo:
        return wire.PluginInfo(
            type="CSIPlugin", name=self.driver, endpoint=str(self.endpoint), supported_versions=CSI_VERSIONS
        )

    async def notify_registration_status(self, request: wire.RegistrationStatus) -> wire.RegistrationStatusResponse:
        if request.plugin_registered:
            log.info("the kubelet knows the driver", extra={"driver": self.driver})
            self.registered.set()
        else:
            self.registered.clear()
            if not self._answer().done():
                self._answer().set_result(request.error)
        return wire.RegistrationStatusResponse()

    async def refused(self) -> None:
        """Waits for ever, or raises what the kubelet has against us: the process ends, and its restart asks anew."""
        reason = await asyncio.shield(self._answer())
        raise HcpError(f"The kubelet does not take the driver {self.driver}", cause=reason)

    def _answer(self) -> asyncio.Future[str]:
        if self._refused is None:
            self._refused = asyncio.get_running_loop().create_future()
        return self._refused
