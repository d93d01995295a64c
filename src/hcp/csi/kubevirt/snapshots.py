"""Snapshots of volumes, by the infra cluster's own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.paths import at
from hcp.csi.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from hcp.csi.kubevirt import handles, objects
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.settings import SNAPSHOT_CLASS_PARAMETER
from hcp.csi.kubevirt.waiting import Late
from hcp.kube import errors as kube
from hcp.kube.resources import PVCS, VOLUMESNAPSHOTS

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    handle: str
    volume: str
    size: int
    made: dt.datetime
    ready: bool


class Snapshots:
    def __init__(self, infra: Infra) -> None:
        self._infra = infra
        self._settings = infra.settings

    async def create(self, name: str, volume: str, parameters: Mapping[str, str]) -> Snapshot:
        if not name or not volume:
            raise InvalidArgument("A snapshot needs a name and a volume")
        live = await self._infra.volume(volume)
        if live is None:
            raise NotFound(f"There is no volume {volume}")
        handle = handles.handle_for(name, "snap")
        backing = objects.backing_of(await self._infra.client.get(PVCS, volume, self._infra.namespace))
        infra_class = self._class(backing.storage_class, parameters)
        size = objects.size_of(live)
        wanted = objects.volume_snapshot(self._settings, handle, volume, size, infra_class, backing)
        found = await self._infra.client.get_or_none(VOLUMESNAPSHOTS, handle, self._infra.namespace)
        if found is None:
            try:
                found = await self._infra.create(wanted)
            except kube.AlreadyExists as error:
                raise Aborted(f"The snapshot {handle} is being made", hint="Ask again.") from error
            except kube.NotFound as error:
                raise FailedPrecondition("The infra cluster has no snapshots", cause=error.cause) from error
        if found["metadata"].get("deletionTimestamp"):
            raise Aborted(f"A snapshot {handle} is being removed", hint="Ask again.")
        if not objects.ours(found, self._settings, objects.SNAPSHOT) or _volume(found) != volume:
            raise AlreadyExists(f"There is a snapshot {handle} already, of something else")
        return await self._cut(handle)

    def _class(self, storage: str, parameters: Mapping[str, str]) -> str:
        """The infra class to use; storage and snapshot classes fit only within one group."""
        if strange := sorted(set(parameters) - {SNAPSHOT_CLASS_PARAMETER}):
            raise InvalidArgument(
                f"The VolumeSnapshotClass has parameters that mean nothing here: {', '.join(strange)}",
                hint=f"Known is {SNAPSHOT_CLASS_PARAMETER}.",
            )
        wanted = parameters.get(SNAPSHOT_CLASS_PARAMETER, "")
        if not wanted and self._settings.default is not None:
            return ""
        group = self._settings.classes[storage].group if storage in self._settings.classes else None
        fitting = sorted(one.name for one in self._settings.snapshot_classes.values() if one.group == group)
        known = self._settings.snapshot_classes.get(wanted)
        if known is not None and known.group == group:
            return wanted
        said = f"The infra snapshot class {wanted}" if wanted else "A snapshot class without a name"
        raise InvalidArgument(
            f"{said} does not fit volumes of the infra class {storage}; these do: {', '.join(fitting) or 'none'}",
            hint="Use a VolumeSnapshotClass of the same group as the StorageClass.",
        )

    async def _cut(self, handle: str) -> Snapshot:
        """Ends when the moment is fixed; a driver may copy for longer, and says so by `ready`."""

        def done(found: Object | None) -> bool:
            if found is None:
                raise Aborted(f"The snapshot {handle} was removed while it was made")
            return bool(at(found, "status.creationTime")) or bool(at(found, "status.error"))

        try:
            found = await self._infra.until(VOLUMESNAPSHOTS, handle, done)
        except Late as late:
            why = str(at(late.last, "status.error.message") or "its storage driver has not begun")
            raise Unavailable(f"The snapshot {handle} is not made yet in the infra cluster", cause=why) from late
        if found is None or not at(found, "status.creationTime"):
            raise Unavailable(
                f"The infra cluster cannot make the snapshot {handle}", cause=str(at(found, "status.error.message"))
            )
        return described(found)

    async def delete(self, handle: str) -> None:
        found = await self._infra.snapshot(handle)
        if found is not None:
            await self._infra.client.delete(
                VOLUMESNAPSHOTS, handle, self._infra.namespace, uid=found["metadata"]["uid"], missing_ok=True
            )

    async def find(self, handle: str, volume: str) -> list[Snapshot]:
        """Those that fit; an empty word fits all."""
        if handle:
            one = await self._infra.snapshot(handle)
            found = [] if one is None else [one]
        else:
            found = await self._infra.snapshots()
        cut = [one for one in found if at(one, "status.creationTime")]
        return [described(one) for one in cut if not volume or _volume(one) == volume]


def _volume(snapshot: Mapping[str, Any]) -> str:
    return str(at(snapshot, "spec.source.persistentVolumeClaimName") or "")


def described(snapshot: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        snapshot["metadata"]["name"],
        _volume(snapshot),
        objects.size_of(snapshot),
        dt.datetime.fromisoformat(str(at(snapshot, "status.creationTime"))),
        at(snapshot, "status.readyToUse") is True,
    )
