"""The Node service. Every call looks at what is there, so it may be repeated, also after a restart in between."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hcp.csi.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from hcp.csi.exclusive import Exclusive
from hcp.csi.kubevirt import handles
from hcp.csi.kubevirt.access import FILE_SYSTEMS
from hcp.csi.kubevirt.hotplug import MOST_PER_NODE
from hcp.csi.kubevirt.node import file_systems, mounts
from hcp.csi.kubevirt.node.disks import Disks
from hcp.csi.wire import csi_pb2 as csi

T = TypeVar("T")
_Rpc = csi.NodeServiceCapability.RPC
CAPABILITIES = (
    _Rpc.STAGE_UNSTAGE_VOLUME,
    _Rpc.EXPAND_VOLUME,
    _Rpc.GET_VOLUME_STATS,
    _Rpc.SINGLE_NODE_MULTI_WRITER,
)
_Mode = csi.VolumeCapability.AccessMode
_READ_ONLY = (_Mode.SINGLE_NODE_READER_ONLY, _Mode.MULTI_NODE_READER_ONLY)
_Usage = csi.VolumeUsage


class NodeService:
    def __init__(self, node: str, disks: Disks) -> None:
        self._node = node
        self._disks = disks
        self._busy = Exclusive()

    async def node_get_capabilities(self, _request: Any) -> Any:
        found = [csi.NodeServiceCapability(rpc=_Rpc(type=kind)) for kind in CAPABILITIES]
        return csi.NodeGetCapabilitiesResponse(capabilities=found)

    async def node_get_info(self, _request: Any) -> Any:
        return csi.NodeGetInfoResponse(node_id=self._node, max_volumes_per_node=MOST_PER_NODE)

    async def node_stage_volume(self, request: Any) -> Any:
        handle, target = _given(request.volume_id), _path(request.staging_target_path)
        await self._alone(handle, self._stage(handle, target, _capability(request)))
        return csi.NodeStageVolumeResponse()

    async def node_unstage_volume(self, request: Any) -> Any:
        handle, target = _given(request.volume_id), _path(request.staging_target_path)
        await self._alone(handle, mounts.unmount(target))
        return csi.NodeUnstageVolumeResponse()

    async def node_publish_volume(self, request: Any) -> Any:
        handle, target = _given(request.volume_id), _path(request.target_path)
        staging, capability = _path(request.staging_target_path), _capability(request)
        read_only = request.readonly or capability.access_mode.mode in _READ_ONLY
        alone = capability.access_mode.mode == _Mode.SINGLE_NODE_SINGLE_WRITER
        if capability.HasField("block"):
            work = self._publish_block(handle, target, read_only=read_only, alone=alone)
        else:
            work = self._publish(handle, staging, target, read_only=read_only, alone=alone)
        await self._alone(handle, work)
        return csi.NodePublishVolumeResponse()

    async def node_unpublish_volume(self, request: Any) -> Any:
        handle, target = _given(request.volume_id), _path(request.target_path)
        await self._alone(handle, _unpublish(target))
        return csi.NodeUnpublishVolumeResponse()

    async def node_expand_volume(self, request: Any) -> Any:
        handle, path = _given(request.volume_id), _path(request.volume_path)
        size = await self._alone(handle, self._expand(handle, path, request.capacity_range.required_bytes))
        return csi.NodeExpandVolumeResponse(capacity_bytes=size)

    async def node_get_volume_stats(self, request: Any) -> Any:
        handle, path = _given(request.volume_id), _path(request.volume_path)
        if mounts.at_point(path) is None:
            raise NotFound(f"The volume {handle} is not mounted at {path}")
        if not mounts.is_folder(path):
            size = self._disks.size(await self._disk(handle))
            return csi.NodeGetVolumeStatsResponse(usage=[_Usage(unit=_Usage.BYTES, total=size)])
        found = os.statvfs(path)
        unit = found.f_frsize
        space = _Usage(
            unit=_Usage.BYTES,
            total=found.f_blocks * unit,
            available=found.f_bavail * unit,
            used=(found.f_blocks - found.f_bfree) * unit,
        )
        files = _Usage(
            unit=_Usage.INODES, total=found.f_files, available=found.f_favail, used=found.f_files - found.f_ffree
        )
        return csi.NodeGetVolumeStatsResponse(usage=[space, files])

    async def _alone(self, handle: str, work: Coroutine[Any, Any, T]) -> T:
        return await self._busy.run(handle, work)

    async def _disk(self, handle: str) -> Path:
        disk = await self._disks.wait(handles.serial(handle))
        if disk is None:
            raise NotFound(f"No disk of volume {handle} is in this machine")
        return disk

    async def _stage(self, handle: str, target: Path, capability: Any) -> None:
        disk = await self._disk(handle)
        if capability.HasField("block"):
            return  # nothing to prepare: the pod gets the disk itself
        there = mounts.at_point(target)
        if there is not None and there.device == self._disks.number(disk):
            return
        if there is not None:
            raise FailedPrecondition(f"Something else is mounted at {target}")
        kind = await file_systems.on(disk)
        read_only = capability.access_mode.mode in _READ_ONLY
        fresh = not kind
        if fresh:
            kind = _wanted(capability.mount.fs_type)
            await file_systems.make(disk, kind)
        else:
            await file_systems.repair(disk, kind)
        mounts.folder(target)
        # Two xfs from one snapshot have the same id, and the second would be refused.
        usual = [*(("nouuid",) if kind == "xfs" else ()), *(("ro",) if read_only else ())]
        await mounts.mount(disk, target, kind, [*capability.mount.mount_flags, *usual])
        if not fresh and not read_only and await file_systems.smaller_than(disk, kind, self._disks.size(disk)):
            # A copy of something smaller, or it grew while nobody had it.
            await file_systems.grow(disk, kind, target)

    async def _publish(self, handle: str, staging: Path, target: Path, *, read_only: bool, alone: bool) -> None:
        source = mounts.at_point(staging)
        if source is None:
            raise FailedPrecondition(f"The volume {handle} is not mounted at {staging}")
        there = mounts.at_point(target)
        if there is not None and there.device == source.device:
            return
        if there is not None:
            raise FailedPrecondition(f"Something else is mounted at {target}")
        if alone:
            _only(handle, mounts.elsewhere(source, staging, target))
        mounts.folder(target)
        await mounts.bind(staging, target, read_only=read_only)

    async def _publish_block(self, handle: str, target: Path, *, read_only: bool, alone: bool) -> None:
        disk = await self._disk(handle)
        if mounts.at_point(target) is not None:
            return
        if alone:
            _only(handle, mounts.of_node(disk))
        mounts.file(target)
        await mounts.bind(disk, target, read_only=read_only)

    async def _expand(self, handle: str, path: Path, least: int) -> int:
        mounted = mounts.at_point(path)
        if mounted is None:
            raise NotFound(f"The volume {handle} is not mounted at {path}")
        disk = await self._disk(handle)
        size = await self._disks.wait_for_size(disk, least)
        if size < least:
            raise Unavailable(
                f"The disk of volume {handle} has {size} bytes, not yet {least}",
                hint="KubeVirt grows disks of running machines with its feature gate ExpandDisks.",
            )
        if mounts.is_folder(path):
            await file_systems.grow(disk, mounted.file_system, path)
        return size


def _only(handle: str, others: Sequence[str]) -> None:
    """A volume that one pod may have is not given to a second one."""
    if others:
        raise FailedPrecondition(f"The volume {handle} is for one pod, and is at {others[0]} already")


async def _unpublish(target: Path) -> None:
    await mounts.unmount(target)
    mounts.remove(target)


def _wanted(kind: str) -> str:
    if kind and kind not in FILE_SYSTEMS:
        raise InvalidArgument(f"The file system {kind} is not one of {', '.join(FILE_SYSTEMS)}")
    return kind or FILE_SYSTEMS[0]


def _given(handle: str) -> str:
    if not handle:
        raise InvalidArgument("The request names no volume")
    return handle


def _path(text: str) -> Path:
    if not text:
        raise InvalidArgument("The request names no path")
    return Path(text)


def _capability(request: Any) -> Any:
    if not request.HasField("volume_capability"):
        raise InvalidArgument("The request does not say how the volume is used")
    if request.volume_capability.WhichOneof("access_type") is None:
        raise InvalidArgument("The request says neither block nor file system")
    return request.volume_capability
