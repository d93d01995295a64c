"""The Controller service: volumes and snapshots come and go."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from hcp.csi.errors import Aborted, AlreadyExists, InvalidArgument, NotFound
from hcp.csi.exclusive import Exclusive
from hcp.csi.local import requests
from hcp.csi.local.pool import Pool, page
from hcp.csi.local.records import Record, Snapshot, Volume, is_id, snapshot_id, volume_id
from hcp.csi.wire import csi_pb2 as csi

_Rpc = csi.ControllerServiceCapability.RPC
CAPABILITIES = (
    _Rpc.CREATE_DELETE_VOLUME,
    _Rpc.LIST_VOLUMES,
    _Rpc.GET_CAPACITY,
    _Rpc.CREATE_DELETE_SNAPSHOT,
    _Rpc.LIST_SNAPSHOTS,
    _Rpc.CLONE_VOLUME,
    _Rpc.EXPAND_VOLUME,
    _Rpc.SINGLE_NODE_MULTI_WRITER,
)


class Controller:
    def __init__(self, pool: Pool, busy: Exclusive) -> None:
        self.pool = pool
        self.busy = busy

    async def controller_get_capabilities(
        self, _request: csi.ControllerGetCapabilitiesRequest
    ) -> csi.ControllerGetCapabilitiesResponse:
        found = [csi.ControllerServiceCapability(rpc=_Rpc(type=kind)) for kind in CAPABILITIES]
        return csi.ControllerGetCapabilitiesResponse(capabilities=found)

    async def create_volume(self, request: csi.CreateVolumeRequest) -> csi.CreateVolumeResponse:
        key = volume_id(requests.required(request.name, "name"))
        block = requests.is_block(request.volume_capabilities)
        requests.check_parameters(request.parameters)
        if request.mutable_parameters:
            raise InvalidArgument("Volumes of this class have no parameters that can be changed")
        return await self.busy.run(key, asyncio.to_thread(self._create, key, block, request))

    def _create(self, key: str, block: bool, request: csi.CreateVolumeRequest) -> csi.CreateVolumeResponse:
        wanted = request.capacity_range if request.HasField("capacity_range") else None
        origin = request.volume_content_source
        made_from = (origin.snapshot.snapshot_id, origin.volume.volume_id)
        found = self.pool.volumes.get(key)
        if found is not None:
            if (
                (found.snapshot, found.clone_of) != made_from
                or found.block != block
                or not requests.fits(found.size, wanted)
            ):
                raise AlreadyExists(f"There is a volume {request.name} already, and it is another one than asked for")
            return csi.CreateVolumeResponse(volume=_volume(found))
        source = self._source(request) if request.HasField("volume_content_source") else None
        if source is not None and source.block != block:
            raise InvalidArgument("A block volume and a volume of files cannot be made from each other")
        size = requests.size_of(wanted, source.size if source is not None else 0)
        volume = Volume(key, request.name, size, block, *made_from)
        self.pool.create(volume, source)
        return csi.CreateVolumeResponse(volume=_volume(volume))

    def _source(self, request: csi.CreateVolumeRequest) -> Volume | Snapshot:
        origin = request.volume_content_source
        if origin.WhichOneof("type") == "snapshot":
            return self._snapshot(origin.snapshot.snapshot_id)
        return self._volume(origin.volume.volume_id)

    async def delete_volume(self, request: csi.DeleteVolumeRequest) -> csi.DeleteVolumeResponse:
        key = requests.required(request.volume_id, "volume")
        await self.busy.run(key, asyncio.to_thread(self.pool.delete, key))
        return csi.DeleteVolumeResponse()

    async def validate_volume_capabilities(
        self, request: csi.ValidateVolumeCapabilitiesRequest
    ) -> csi.ValidateVolumeCapabilitiesResponse:
        key = requests.required(request.volume_id, "volume")
        block = requests.is_block(request.volume_capabilities)
        volume = await asyncio.to_thread(self._volume, key)
        if volume.block != block:
            return csi.ValidateVolumeCapabilitiesResponse(message="it is a volume of the other kind")
        confirmed = csi.ValidateVolumeCapabilitiesResponse.Confirmed(
            volume_context=request.volume_context,
            volume_capabilities=request.volume_capabilities,
            parameters=request.parameters,
        )
        return csi.ValidateVolumeCapabilitiesResponse(confirmed=confirmed)

    async def list_volumes(self, request: csi.ListVolumesRequest) -> csi.ListVolumesResponse:
        known = await asyncio.to_thread(self.pool.volumes.all)
        shown, following = _page(known, request)
        entries = [csi.ListVolumesResponse.Entry(volume=_volume(item)) for item in shown]
        return csi.ListVolumesResponse(entries=entries, next_token=following)

    async def get_capacity(self, request: csi.GetCapacityRequest) -> csi.GetCapacityResponse:
        if request.volume_capabilities:
            requests.is_block(request.volume_capabilities)
        total, free = await asyncio.to_thread(self.pool.room)
        response = csi.GetCapacityResponse(available_capacity=free)
        response.maximum_volume_size.value = total
        return response

    async def controller_expand_volume(
        self, request: csi.ControllerExpandVolumeRequest
    ) -> csi.ControllerExpandVolumeResponse:
        key = requests.required(request.volume_id, "volume")
        if not request.HasField("capacity_range"):
            raise InvalidArgument("The request does not say how big the volume shall be")
        return await self.busy.run(key, asyncio.to_thread(self._expand, key, request))

    def _expand(self, key: str, request: csi.ControllerExpandVolumeRequest) -> csi.ControllerExpandVolumeResponse:
        volume = self._volume(key)
        if request.HasField("volume_capability") and requests.is_block([request.volume_capability]) != volume.block:
            raise InvalidArgument(f"Volume {key} is of the other kind")
        if request.capacity_range.required_bytes > volume.size or not requests.fits(
            volume.size, request.capacity_range
        ):
            size = requests.size_of(request.capacity_range, volume.size)
            volume = self.pool.grow(volume, size)
        return csi.ControllerExpandVolumeResponse(capacity_bytes=volume.size, node_expansion_required=False)

    async def create_snapshot(self, request: csi.CreateSnapshotRequest) -> csi.CreateSnapshotResponse:
        key = snapshot_id(requests.required(request.name, "name"))
        source = requests.required(request.source_volume_id, "volume to take a snapshot of")
        requests.check_parameters(request.parameters)
        return await self.busy.run(key, asyncio.to_thread(self._take, key, request.name, source))

    def _take(self, key: str, name: str, source: str) -> csi.CreateSnapshotResponse:
        found = self.pool.snapshots.get(key)
        if found is not None and found.source != source:
            raise AlreadyExists(f"There is a snapshot {name} already, of volume {found.source}")
        made = found or self.pool.take(key, name, self._volume(source))
        return csi.CreateSnapshotResponse(snapshot=_as_snapshot(made))

    async def delete_snapshot(self, request: csi.DeleteSnapshotRequest) -> csi.DeleteSnapshotResponse:
        key = requests.required(request.snapshot_id, "snapshot")
        await self.busy.run(key, asyncio.to_thread(self.pool.drop, key))
        return csi.DeleteSnapshotResponse()

    async def list_snapshots(self, request: csi.ListSnapshotsRequest) -> csi.ListSnapshotsResponse:
        known = [
            item
            for item in await asyncio.to_thread(self.pool.snapshots.all)
            if request.snapshot_id in ("", item.id) and request.source_volume_id in ("", item.source)
        ]
        shown, following = _page(known, request)
        entries = [csi.ListSnapshotsResponse.Entry(snapshot=_as_snapshot(item)) for item in shown]
        return csi.ListSnapshotsResponse(entries=entries, next_token=following)

    def _volume(self, key: str) -> Volume:
        found = self.pool.volumes.get(key)
        if found is None:
            raise NotFound(f"There is no volume {key}")
        return found

    def _snapshot(self, key: str) -> Snapshot:
        found = self.pool.snapshots.get(key)
        if found is None:
            raise NotFound(f"There is no snapshot {key}")
        return found


def _page(records: list[Record], request: Any) -> tuple[list[Record], str]:
    if request.max_entries < 0:
        raise InvalidArgument("A list cannot have fewer than no entries")
    if request.starting_token and not is_id(request.starting_token):
        raise Aborted("The token is none of ours", hint="Begin the list anew, without one.")
    return page(records, request.starting_token, request.max_entries)


def _volume(volume: Volume) -> csi.Volume:
    made = csi.Volume(volume_id=volume.id, capacity_bytes=volume.size)
    if volume.snapshot:
        made.content_source.snapshot.snapshot_id = volume.snapshot
    elif volume.clone_of:
        made.content_source.volume.volume_id = volume.clone_of
    return made


def _as_snapshot(snapshot: Snapshot) -> csi.Snapshot:
    part, whole = math.modf(snapshot.created)
    return csi.Snapshot(
        snapshot_id=snapshot.id,
        source_volume_id=snapshot.source,
        size_bytes=snapshot.size,
        creation_time=Timestamp(seconds=int(whole), nanos=int(part * 1e9)),
        ready_to_use=True,
    )
