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


BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SUFFIX = "-reg.sock"


def registration_socket(driver: str, registry: Path = REGISTRY, boot: str = "") -> Path:
    return registry / f"{driver}{boot and '-'}{boot}{_SUFFIX}"


def socket_of_this_boot(driver: str, registry: Path = REGISTRY, boot_id: Path = BOOT_ID) -> Path:
    """A path that the kubelet has not tried in vain yet, and none of former boots.

    A machine that lost its power leaves its socket. The next kubelet finds it before the driver runs, gets no answer,
    and asks again later and later, up to two minutes; a path that it has not seen before is asked at once.
    """
    mine = registration_socket(driver, registry, boot_id.read_text().strip()[:8])
    for path in registry.glob(f"{driver}*{_SUFFIX}"):
        if path != mine:
            path.unlink(missing_ok=True)
    return mine


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
