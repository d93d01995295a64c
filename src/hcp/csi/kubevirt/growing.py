"""Making volumes larger."""

from __future__ import annotations

from typing import Any

from hcp.api.names import MARK_CSI_SIZE
from hcp.api.paths import at
from hcp.csi.errors import InvalidArgument, NotFound, ResourceExhausted, Unavailable
from hcp.csi.kubevirt import access, objects
from hcp.csi.kubevirt.infra import Infra
from hcp.csi.kubevirt.waiting import Late
from hcp.kube import errors as kube
from hcp.kube.resources import DATAVOLUMES, PVCS
from hcp.runtime.quantity import parse as quantity

Object = dict[str, Any]


class Growing:
    def __init__(self, infra: Infra) -> None:
        self._infra = infra

    async def expand(self, handle: str, required: int, limit: int) -> int:
        """Grows the infra claim; KubeVirt grows the disk of a running machine after it."""
        live = await self._infra.volume(handle)
        if live is None:
            raise NotFound(f"There is no volume {handle}")
        before, wanted = objects.size_of(live), access.size(required, limit)
        if wanted <= before:
            return before
        claim = await bound(self._infra, handle)
        asked = int(quantity(at(claim, "spec.resources.requests.storage")) or 0)
        target = access.grown(asked, before, wanted)
        if asked < target:
            await self._grow(claim, target)
        await self._grown(handle, target)
        await self._write_down(live, wanted)
        return wanted

    async def _write_down(self, live: Object, wanted: int) -> None:
        """On the volume itself. CDI writes to the same object: only another size is in the way."""
        handle, before = live["metadata"]["name"], objects.size_of(live)
        while objects.size_of(live) == before:
            version = live["metadata"]["resourceVersion"]
            body = {"metadata": {"annotations": {MARK_CSI_SIZE: str(wanted)}, "resourceVersion": version}}
            try:
                await self._infra.client.patch(DATAVOLUMES, handle, self._infra.namespace, body)
                return
            except kube.Conflict:
                found = await self._infra.volume(handle)
                if found is None:
                    raise NotFound(f"There is no volume {handle}") from None
                live = found

    async def _grow(self, claim: Object, target: int) -> None:
        body = {"spec": {"resources": {"requests": {"storage": str(target)}}}}
        try:
            await self._infra.client.patch(PVCS, claim["metadata"]["name"], self._infra.namespace, body)
        except (kube.Forbidden, kube.Invalid) as error:
            if "exceeded quota" in str(error.cause):
                raise ResourceExhausted("The hosted cluster may have no larger volumes", cause=error.cause) from error
            if "resize" not in str(error.cause):
                raise
            raise InvalidArgument(
                f"The infra class {at(claim, 'spec.storageClassName')} cannot make volumes larger",
                cause=error.cause,
                hint="Make a new claim and copy the data, or ask the owner of the infra cluster.",
            ) from error

    async def _grown(self, handle: str, target: int) -> None:
        def done(claim: Object | None) -> bool:
            capacity = int(quantity(at(claim, "status.capacity.storage")) or 0)
            pending = any(
                one.get("type") == "FileSystemResizePending" and one.get("status") == "True"
                for one in at(claim, "status.conditions") or ()
            )
            # The rest is done where it is mounted next.
            return capacity >= target or pending

        try:
            await self._infra.until(PVCS, handle, done)
        except Late as late:
            told = [str(one.get("message") or one.get("type")) for one in at(late.last, "status.conditions") or ()]
            why = "; ".join(told) or "its storage driver has not begun"
            raise Unavailable(f"The infra cluster has not made the volume {handle} larger yet", cause=why) from late


async def bound(infra: Infra, handle: str) -> Object:
    """Its claim; only bound ones may grow."""
    try:
        claim = await infra.until(PVCS, handle, lambda claim: at(claim, "status.phase") == "Bound")
    except Late as late:
        raise Unavailable(f"The infra cluster has not bound the claim {handle} yet") from late
    return claim or {}
