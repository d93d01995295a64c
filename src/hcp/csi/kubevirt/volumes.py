"""Making, growing and removing volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hcp.api.names import MARK_CSI_SOURCE
from hcp.api.paths import annotations_of, at
from hcp.csi.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from hcp.csi.kubevirt import access, handles, objects
from hcp.csi.kubevirt import settings as names
from hcp.csi.kubevirt.growing import bound
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.origins import Origin, Source, direct
from hcp.csi.kubevirt.settings import InfraClass
from hcp.csi.kubevirt.waiting import Late
from hcp.kube import errors as kube
from hcp.kube.resources import DATAVOLUMES, PVCS

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Volume:
    handle: str
    size: int
    bus: str


class Volumes:
    def __init__(self, infra: Infra) -> None:
        self._infra = infra
        self._settings = infra.settings

    async def create(
        self,
        name: str,
        needs: Sequence[access.Access],
        required: int,
        limit: int,
        parameters: Mapping[str, str],
        source: Source,
    ) -> Volume:
        """The volume, ready to be plugged in. Asking again for the same gives the same."""
        if not name:
            raise InvalidArgument("The volume has no name")
        infra_class, bus = self.class_of(parameters), bus_of(parameters)
        need = access.check(needs, infra_class)
        origin = await self._origin(source)
        size = access.size(max(required, origin.size), limit)
        access.enough(need, size)
        handle = handles.handle_for(name, "vol")
        # The class that is the infra cluster's default may be left unsaid, but not in a claim of ours.
        default = self._settings.default
        known = infra_class if infra_class.name or default is None else default
        claimed = direct(known, need, size, origin)
        wanted = objects.data_volume(
            self._settings,
            handle,
            need,
            size,
            infra_class.name,
            origin.source,
            # CDI compares claims, and not the disks in them.
            room=origin.backing.size if origin.backing is not None else 0,
            adopts=claimed is not None,
        )
        live = await self._infra.client.get_or_none(DATAVOLUMES, handle, self._infra.namespace)
        if live is None:
            if claimed is not None:
                await self._claim(handle, claimed, origin)
            try:
                live = await self._infra.create(wanted)
            except kube.AlreadyExists as error:
                raise Aborted(f"The volume {handle} is being made", hint="Ask again.") from error
        _same(live, wanted, required, limit, objects.ours(live, self._settings, objects.VOLUME))
        await self._ready(handle)
        return Volume(handle, objects.size_of(live), bus)

    def class_of(self, parameters: Mapping[str, str]) -> InfraClass:
        """The infra class that a guest's class means. Guests write their classes themselves: only what the
        HostedCluster maps is used."""
        known = (names.CLASS_PARAMETER, names.BUS_PARAMETER)
        if strange := sorted(set(parameters) - set(known)):
            raise InvalidArgument(
                f"The StorageClass has parameters that mean nothing here: {', '.join(strange)}",
                hint=f"Known are {' and '.join(known)}.",
            )
        wanted = parameters.get(names.CLASS_PARAMETER, "")
        found = self._settings.classes.get(wanted) if wanted else self._settings.default
        if found is not None:
            return found if wanted else replace(found, name="")
        mapped = ", ".join(sorted(self._settings.classes)) or "none"
        if wanted:
            raise InvalidArgument(
                f"The infra class {wanted} is not given to this cluster; mapped are: {mapped}",
                hint="The owner of the HostedCluster maps classes (storageDriver).",
            )
        raise InvalidArgument(
            f"The StorageClass names no infra class and this cluster has no default one; mapped are: {mapped}",
            hint=f"Set the parameter {names.CLASS_PARAMETER}.",
        )

    async def _origin(self, source: Source) -> Origin:
        if source.snapshot:
            found = await self._infra.snapshot(source.snapshot)
            if found is None:
                raise NotFound(f"There is no snapshot {source.snapshot}")
            kind, backing = "snapshot", objects.backing_then(found)
        elif source.volume:
            found = await self._infra.volume(source.volume)
            if found is None:
                raise NotFound(f"There is no volume {source.volume}")
            kind, backing = "pvc", objects.backing_of(await bound(self._infra, source.volume))
        else:
            return Origin({objects.BLANK: {}})
        name = found["metadata"]["name"]
        return Origin({kind: {"namespace": self._infra.namespace, "name": name}}, objects.size_of(found), backing)

    async def _claim(self, handle: str, backing: objects.Backing, origin: Origin) -> None:
        """Made before its DataVolume, which takes it over; asking again finds it."""
        found = await self._infra.client.get_or_none(PVCS, handle, self._infra.namespace)
        if found is None:
            try:
                await self._infra.create(objects.claim(self._settings, handle, backing, origin.source))
            except kube.AlreadyExists as error:
                raise Aborted(f"The volume {handle} is being made", hint="Ask again.") from error
        elif found["metadata"].get("deletionTimestamp"):
            raise Aborted(f"A volume {handle} is being removed", hint="Ask again.")
        elif not objects.ours(found, self._settings, objects.VOLUME):
            raise AlreadyExists(f"The name {handle} is taken in the infra cluster")

    async def _ready(self, handle: str) -> None:
        def done(volume: Object | None) -> bool:
            if volume is None:
                raise Aborted(f"The volume {handle} was removed while it was made")
            return at(volume, "status.phase") == "Succeeded" or _hopeless(volume)

        try:
            volume = await self._infra.until(DATAVOLUMES, handle, done)
        except Late as late:
            why = objects.failure(late.last or {})
            raise Unavailable(f"The volume {handle} is not ready yet in the infra cluster", cause=why) from late
        if volume is not None and at(volume, "status.phase") != "Succeeded":
            # Nobody will ask for its removal, since it never came to be.
            await self._infra.client.delete(DATAVOLUMES, handle, self._infra.namespace, missing_ok=True)
            why = objects.failure(volume)
            kind = ResourceExhausted if "quota" in why.lower() else FailedPrecondition
            raise kind("The infra cluster cannot make the volume", cause=why)

    async def delete(self, handle: str) -> None:
        """What is not there, or not ours, is as good as gone."""
        live = await self._infra.volume(handle)
        if live is None:
            await self._forget(handle)
            return
        holders = sorted(name for name, one in (await self._infra.machines()).items() if one.has(handle))
        if holders:
            raise FailedPrecondition(f"The volume {handle} is attached to {', '.join(holders)}")
        await self._infra.client.delete(
            DATAVOLUMES, handle, self._infra.namespace, uid=live["metadata"]["uid"], missing_ok=True
        )

    async def _forget(self, handle: str) -> None:
        """The claim of a volume whose DataVolume never came to be: with one, it goes as all others do."""
        if not handles.valid(handle):
            return
        found = await self._infra.client.get_or_none(PVCS, handle, self._infra.namespace)
        if found is None or not objects.ours(found, self._settings, objects.VOLUME):
            return
        if not found["metadata"].get("ownerReferences"):
            size, source = objects.backing_of(found).size, Origin({objects.BLANK: {}}).source
            owner = objects.data_volume(self._settings, handle, access.Access(), size, "", source, adopts=True)
            await self._infra.create(owner)
            await self._ready(handle)
            await self._infra.client.delete(DATAVOLUMES, handle, self._infra.namespace, missing_ok=True)


def bus_of(values: Mapping[str, str]) -> str:
    bus = values.get(names.BUS_PARAMETER) or names.DEFAULT_BUS
    if bus not in names.BUSES:
        raise InvalidArgument(f"The bus {bus} is not one of {', '.join(names.BUSES)}")
    return bus


def _hopeless(volume: Mapping[str, Any]) -> bool:
    """CDI says by its reasons when the claim itself is refused; trying again would change nothing."""
    if at(volume, "status.phase") == "Failed":
        return True
    reasons = [str(one.get("reason") or "") for one in at(volume, "status.conditions") or ()]
    return any(reason in ("ErrExceededQuota", "ErrClaimNotValid", "ErrIncompatiblePVC") for reason in reasons)


def _same(live: Mapping[str, Any], wanted: Mapping[str, Any], required: int, limit: int, ours: bool) -> None:
    handle = live["metadata"]["name"]
    if live["metadata"].get("deletionTimestamp"):
        raise Aborted(f"A volume {handle} is being removed", hint="Ask again.")
    if not ours:
        raise AlreadyExists(f"The name {handle} is taken in the infra cluster")
    size = objects.size_of(live)
    if size < required or (limit and size > limit):
        raise AlreadyExists(f"There is a volume {handle} already, with {size} bytes")
    if annotations_of(live).get(MARK_CSI_SOURCE) != annotations_of(wanted).get(MARK_CSI_SOURCE):
        raise AlreadyExists(f"There is a volume {handle} already, made from something else")
    for field in ("storageClassName", "volumeMode"):
        if at(live, f"spec.storage.{field}") != at(wanted, f"spec.storage.{field}"):
            raise AlreadyExists(f"There is a volume {handle} already, of another class or kind")
