"""The Controller service: requests of the protocol into words of ours, and answers back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from hcp.csi.errors import Aborted, InvalidArgument, NotFound
from hcp.csi.exclusive import Exclusive
from hcp.csi.kubevirt import access, handles, objects
from hcp.csi.kubevirt.attaching import Attaching
from hcp.csi.kubevirt.growing import Growing
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.origins import Source
from hcp.csi.kubevirt.settings import BUS_PARAMETER
from hcp.csi.kubevirt.snapshots import Snapshot, Snapshots
from hcp.csi.kubevirt.volumes import Volumes
from hcp.csi.wire import csi_pb2 as csi

_Rpc = csi.ControllerServiceCapability.RPC
CAPABILITIES = (
    _Rpc.CREATE_DELETE_VOLUME,
    _Rpc.PUBLISH_UNPUBLISH_VOLUME,
    _Rpc.LIST_VOLUMES,
    _Rpc.LIST_VOLUMES_PUBLISHED_NODES,
    _Rpc.CREATE_DELETE_SNAPSHOT,
    _Rpc.LIST_SNAPSHOTS,
    _Rpc.CLONE_VOLUME,
    _Rpc.EXPAND_VOLUME,
    _Rpc.SINGLE_NODE_MULTI_WRITER,
)
_Mode = csi.VolumeCapability.AccessMode
_SHARED = (_Mode.MULTI_NODE_READER_ONLY, _Mode.MULTI_NODE_SINGLE_WRITER, _Mode.MULTI_NODE_MULTI_WRITER)
_READ_ONLY = (_Mode.SINGLE_NODE_READER_ONLY, _Mode.MULTI_NODE_READER_ONLY)


def access_of(capability: Any) -> access.Access:
    mode = capability.access_mode.mode
    kind = capability.WhichOneof("access_type")
    if mode == _Mode.UNKNOWN or kind is None:
        raise InvalidArgument("The request says no access mode, or neither block nor file system")
    return access.Access(
        shared=mode in _SHARED,
        block=kind == "block",
        read_only=mode in _READ_ONLY,
        file_system=capability.mount.fs_type if kind == "mount" else "",
    )


class ControllerService:
    """`volumes` and `attaching` are shared with the attacher, which asks without a socket."""

    def __init__(self, infra: Infra, attaching: Attaching, busy: Exclusive) -> None:
        self._infra = infra
        self._volumes, self._growing = Volumes(infra), Growing(infra)
        self._snapshots = Snapshots(infra)
        self._attaching = attaching
        self._busy = busy

    async def controller_get_capabilities(self, _request: Any) -> Any:
        found = [csi.ControllerServiceCapability(rpc=_Rpc(type=kind)) for kind in CAPABILITIES]
        return csi.ControllerGetCapabilitiesResponse(capabilities=found)

    async def create_volume(self, request: Any) -> Any:
        if not request.name:
            raise InvalidArgument("The volume has no name")
        content = request.volume_content_source
        source = Source(content.snapshot.snapshot_id, content.volume.volume_id)
        required, limit = _range(request.capacity_range)
        needs = [access_of(one) for one in request.volume_capabilities]
        made = await self._busy.run(
            handles.handle_for(request.name, "vol"),
            self._volumes.create(request.name, needs, required, limit, dict(request.parameters), source),
        )
        volume = csi.Volume(volume_id=made.handle, capacity_bytes=made.size, volume_context={BUS_PARAMETER: made.bus})
        if request.HasField("volume_content_source"):
            volume.content_source.CopyFrom(content)
        return csi.CreateVolumeResponse(volume=volume)

    async def delete_volume(self, request: Any) -> Any:
        await self._busy.run(_given(request.volume_id), self._volumes.delete(request.volume_id))
        return csi.DeleteVolumeResponse()

    async def controller_expand_volume(self, request: Any) -> Any:
        handle = _given(request.volume_id)
        required, limit = _range(request.capacity_range)
        if not required and not limit:
            raise InvalidArgument("The request says no size")
        size = await self._busy.run(handle, self._growing.expand(handle, required, limit))
        is_block = request.HasField("volume_capability") and request.volume_capability.HasField("block")
        return csi.ControllerExpandVolumeResponse(capacity_bytes=size, node_expansion_required=not is_block)

    async def controller_publish_volume(self, request: Any) -> Any:
        handle, node = _given(request.volume_id), request.node_id
        if not node or not request.HasField("volume_capability"):
            raise InvalidArgument("The request names no node, or not how the volume is used")
        if request.readonly:
            raise InvalidArgument("Volumes are attached for reading and writing; mount them read-only instead")
        asked = access_of(request.volume_capability)
        await self._busy.run(handle, self._attaching.publish(handle, node, asked.shared, dict(request.volume_context)))
        return csi.ControllerPublishVolumeResponse()

    async def controller_unpublish_volume(self, request: Any) -> Any:
        handle = _given(request.volume_id)
        await self._busy.run(handle, self._attaching.unpublish(handle, request.node_id))
        return csi.ControllerUnpublishVolumeResponse()

    async def validate_volume_capabilities(self, request: Any) -> Any:
        handle = _given(request.volume_id)
        if not request.volume_capabilities:
            raise InvalidArgument("The request says no access mode")
        live = await self._infra.volume(handle)
        if live is None:
            raise NotFound(f"There is no volume {handle}")
        try:
            infra_class = self._volumes.class_of(dict(request.parameters))
            asked = access.check([access_of(one) for one in request.volume_capabilities], infra_class)
        except InvalidArgument as error:
            return csi.ValidateVolumeCapabilitiesResponse(message=str(error))
        if asked.shared and not objects.shared(live):
            return csi.ValidateVolumeCapabilitiesResponse(message="The volume was made for one node at a time")
        confirmed = csi.ValidateVolumeCapabilitiesResponse.Confirmed(
            volume_context=request.volume_context,
            volume_capabilities=request.volume_capabilities,
            parameters=request.parameters,
        )
        return csi.ValidateVolumeCapabilitiesResponse(confirmed=confirmed)

    async def list_volumes(self, request: Any) -> Any:
        found, token = _page(await self._infra.volumes(), request)
        machines = await self._infra.machines()
        entries = []
        for one in found:
            handle = one["metadata"]["name"]
            nodes = sorted(name for name, machine in machines.items() if machine.ready(handle))
            entries.append(
                csi.ListVolumesResponse.Entry(
                    volume=csi.Volume(volume_id=handle, capacity_bytes=objects.size_of(one)),
                    status=csi.ListVolumesResponse.VolumeStatus(published_node_ids=nodes),
                )
            )
        return csi.ListVolumesResponse(entries=entries, next_token=token)

    async def create_snapshot(self, request: Any) -> Any:
        made = await self._busy.run(
            handles.handle_for(request.name, "snap") if request.name else "",
            self._snapshots.create(request.name, request.source_volume_id, dict(request.parameters)),
        )
        return csi.CreateSnapshotResponse(snapshot=_snapshot(made))

    async def delete_snapshot(self, request: Any) -> Any:
        await self._busy.run(_given(request.snapshot_id), self._snapshots.delete(request.snapshot_id))
        return csi.DeleteSnapshotResponse()

    async def list_snapshots(self, request: Any) -> Any:
        found, token = _page(await self._snapshots.find(request.snapshot_id, request.source_volume_id), request)
        entries = [csi.ListSnapshotsResponse.Entry(snapshot=_snapshot(one)) for one in found]
        return csi.ListSnapshotsResponse(entries=entries, next_token=token)


def _given(handle: str) -> str:
    if not handle:
        raise InvalidArgument("The request names nothing")
    return handle


def _range(given: Any) -> tuple[int, int]:
    return int(given.required_bytes), int(given.limit_bytes)


def _page(found: Sequence[Any], request: Any) -> tuple[Iterable[Any], str]:
    """A token is the place to go on from; a list that changed meanwhile may show one twice or miss one."""
    token = request.starting_token
    if token and (not token.isdigit() or int(token) > len(found)):
        raise Aborted("The list has changed; begin anew", cause=f"token {token}")
    if request.max_entries < 0:
        raise InvalidArgument("max_entries is negative")
    start = int(token or 0)
    end = start + request.max_entries if request.max_entries else len(found)
    return found[start:end], str(end) if end < len(found) else ""


def _snapshot(one: Snapshot) -> Any:
    made = Timestamp()
    made.FromDatetime(one.made)
    return csi.Snapshot(
        snapshot_id=one.handle,
        source_volume_id=one.volume,
        size_bytes=one.size,
        creation_time=made,
        ready_to_use=one.ready,
    )
