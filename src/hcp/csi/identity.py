"""Who a driver is and what it can do at all: the Identity service, alike for every driver of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from google.protobuf.wrappers_pb2 import BoolValue

from hcp import __version__
from hcp.csi.wire import csi_pb2 as csi

_Service = csi.PluginCapability.Service
_Expansion = csi.PluginCapability.VolumeExpansion
CONTROLLER_SERVICE = csi.PluginCapability(service=_Service(type=_Service.CONTROLLER_SERVICE))
TOPOLOGY = csi.PluginCapability(service=_Service(type=_Service.VOLUME_ACCESSIBILITY_CONSTRAINTS))
ONLINE_EXPANSION = csi.PluginCapability(volume_expansion=_Expansion(type=_Expansion.ONLINE))
OFFLINE_EXPANSION = csi.PluginCapability(volume_expansion=_Expansion(type=_Expansion.OFFLINE))


async def _always() -> bool:
    return True


class Identity:
    """`ready` says whether the driver can do its work now; raising tells why it cannot."""

    def __init__(
        self,
        name: str,
        capabilities: Sequence[csi.PluginCapability] = (),
        *,
        ready: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        self.name = name
        self.capabilities = tuple(capabilities)
        self.ready = ready

    async def get_plugin_info(self, _request: csi.GetPluginInfoRequest) -> csi.GetPluginInfoResponse:
        return csi.GetPluginInfoResponse(name=self.name, vendor_version=__version__)

    async def get_plugin_capabilities(
        self, _request: csi.GetPluginCapabilitiesRequest
    ) -> csi.GetPluginCapabilitiesResponse:
        return csi.GetPluginCapabilitiesResponse(capabilities=self.capabilities)

    async def probe(self, _request: csi.ProbeRequest) -> csi.ProbeResponse:
        return csi.ProbeResponse(ready=BoolValue(value=await self.ready()))
