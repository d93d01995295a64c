"""The Node service: volumes where pods want them. Nothing has to be attached or prepared first: they are here."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hcp.csi.errors import FailedPrecondition, InvalidArgument, NotFound
from hcp.csi.exclusive import Exclusive
from hcp.csi.local import publishing, requests
from hcp.csi.local.pool import Pool
from hcp.csi.local.records import Volume
from hcp.csi.wire import csi_pb2 as csi
from hcp.linux import btrfs

_Rpc = csi.NodeServiceCapability.RPC
_Mode = csi.VolumeCapability.AccessMode
CAPABILITIES = (_Rpc.GET_VOLUME_STATS, _Rpc.SINGLE_NODE_MULTI_WRITER)


class Node:
    def __init__(self, pool: Pool, busy: Exclusive, name: str) -> None:
        self.pool = pool
        self.busy = busy
        self.name = name

    async def node_get_capabilities(self, _request: csi.NodeGetCapabilitiesRequest) -> csi.NodeGetCapabilitiesResponse:
        found = [csi.NodeServiceCapability(rpc=_Rpc(type=kind)) for kind in CAPABILITIES]
        return csi.NodeGetCapabilitiesResponse(capabilities=found)

    async def node_get_info(self, _request: csi.NodeGetInfoRequest) -> csi.NodeGetInfoResponse:
        return csi.NodeGetInfoResponse(node_id=self.name)

    async def node_publish_volume(self, request: csi.NodePublishVolumeRequest) -> csi.NodePublishVolumeResponse:
        key = requests.required(request.volume_id, "volume")
        target = Path(requests.required(request.target_path, "target path"))
        if not request.HasField("volume_capability"):
            raise InvalidArgument("The request does not say how the volume shall be used")
        block = requests.is_block([request.volume_capability])
        options = [] if block else list(request.volume_capability.mount.mount_flags)
        flags = publishing.flags_of(options, read_only=request.readonly)
        alone = request.volume_capability.access_mode.mode == _Mode.SINGLE_NODE_SINGLE_WRITER
        await self.busy.run(key, asyncio.to_thread(self._publish, key, block, target, flags, alone))
        return csi.NodePublishVolumeResponse()

    def _publish(self, key: str, block: bool, target: Path, flags: int, alone: bool) -> None:
        volume = self._volume(key)
        if volume.block != block:
            raise InvalidArgument(f"Volume {key} is of the other kind")
        if alone and (other := publishing.elsewhere(self.pool, volume, target)) is not None:
            raise FailedPrecondition(f"Volume {key} is for one pod alone, and is at {other}")
        if block:
            publishing.publish_device(self.pool, volume, target)
        else:
            publishing.publish_folder(self.pool, volume, target, flags)

    async def node_unpublish_volume(self, request: csi.NodeUnpublishVolumeRequest) -> csi.NodeUnpublishVolumeResponse:
        key = requests.required(request.volume_id, "volume")
        target = Path(requests.required(request.target_path, "target path"))
        await self.busy.run(key, asyncio.to_thread(self._unpublish, key, target))
        return csi.NodeUnpublishVolumeResponse()

    def _unpublish(self, key: str, target: Path) -> None:
        publishing.unpublish(self.pool, self.pool.volumes.get(key), target)

    async def node_get_volume_stats(self, request: csi.NodeGetVolumeStatsRequest) -> csi.NodeGetVolumeStatsResponse:
        key = requests.required(request.volume_id, "volume")
        path = Path(requests.required(request.volume_path, "path of the volume"))
        return await asyncio.to_thread(self._stats, key, path)

    def _stats(self, key: str, path: Path) -> csi.NodeGetVolumeStatsResponse:
        volume = self._volume(key)
        if not path.exists():
            raise NotFound(f"Volume {key} is not at {path}")
        usage = csi.VolumeUsage(unit=csi.VolumeUsage.BYTES, total=volume.size)
        if not volume.block:
            usage.used = min(volume.size, btrfs.used(self.pool.tree(volume)))
            usage.available = volume.size - usage.used
        return csi.NodeGetVolumeStatsResponse(usage=[usage])

    def _volume(self, key: str) -> Volume:
        found = self.pool.volumes.get(key)
        if found is None:
            raise NotFound(f"There is no volume {key}")
        return found
