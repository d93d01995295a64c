"""VolumeAttachments of the guest: each asks for one volume on one node, and is told how that went.

Whoever writes VolumeAttachments and PersistentVolumes in a guest gets no more than volumes and machines of that guest:
both are looked up in the infra cluster by their marks.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.paths import annotations_of, at
from hcp.csi.errors import InvalidArgument
from hcp.csi.exclusive import Exclusive
from hcp.csi.kubevirt import DRIVER
from hcp.csi.kubevirt.attaching import Attaching
from hcp.errors import HcpError, sentence
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import PVS, VOLUMEATTACHMENTS
from hcp.runtime import Informer
from hcp.runtime.controller import Controller, Result

log = logging.getLogger(__name__)
Object = dict[str, Any]
# The names that the established attacher uses, so that tools know them.
FINALIZER = f"external-attacher/{DRIVER.replace('.', '-')}"
HANDLE = f"{DRIVER}/volume-handle"
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}
# What the kubelet shows of an error.
_MOST_WORDS = 1000


class Attacher:
    def __init__(self, guest: Client, attaching: Attaching, busy: Exclusive) -> None:
        self._guest = guest
        self._attaching = attaching
        self._busy = busy
        self.attachments = Informer(guest, VOLUMEATTACHMENTS)
        self.attachments.add_index("volume", lambda one: [str(at(one, "spec.source.persistentVolumeName") or "")])
        self.controller = Controller("attacher", self.reconcile, workers=16, max_delay=30.0)
        self.controller.watch(self.attachments, self._also_of_the_same_volume)

    def _also_of_the_same_volume(self, one: Object) -> Iterable[str]:
        """A node that lets a volume go may be what another one waits for."""
        if at(one, "spec.attacher") != DRIVER:
            return
        yield one["metadata"]["name"]
        volume = str(at(one, "spec.source.persistentVolumeName") or "")
        for other in self.attachments.by_index("volume", volume):
            if at(other, "status.attached") is not True:
                yield other["metadata"]["name"]

    async def reconcile(self, name: str) -> Result | None:
        one = self.attachments.get(name)
        if one is None or at(one, "spec.attacher") != DRIVER:
            return None
        going = bool(one["metadata"].get("deletionTimestamp"))
        if going and FINALIZER not in (one["metadata"].get("finalizers") or ()):
            return None
        if not going and at(one, "status.attached") is True:
            return None
        try:
            await (self._detach(one) if going else self._attach(one))
        except HcpError as error:
            await self._tell(one, "detachError" if going else "attachError", sentence(error)[:_MOST_WORDS])
            raise
        return None

    async def _attach(self, one: Object) -> None:
        volume = await self._volume(one)
        handle = str(at(volume, "spec.csi.volumeHandle") or "")
        one = await self._hold(one, handle)
        shared = bool(_SHARED & set(at(volume, "spec.accessModes") or ()))
        name = str(at(one, "spec.source.persistentVolumeName"))
        nodes = {str(at(other, "spec.nodeName")) for other in self.attachments.by_index("volume", name)}
        context = at(volume, "spec.csi.volumeAttributes") or {}
        node = str(at(one, "spec.nodeName"))
        # Not a moment earlier than the machine has it for good: until KubeVirt calls a disk ready, another one that is
        # plugged in or out beside it can make it go and come back, and a guest that has mounted it loses it for good.
        await self._busy.run(handle, self._attaching.publish(handle, node, shared, context, nodes))
        await self._write(one, {"status": {"attached": True, "attachError": None, "detachError": None}}, "status")

    async def _detach(self, one: Object) -> None:
        handle = annotations_of(one).get(HANDLE, "")
        if handle:
            node = str(at(one, "spec.nodeName"))
            await self._busy.run(handle, self._attaching.unpublish(handle, node))
        left = [word for word in one["metadata"].get("finalizers") or () if word != FINALIZER]
        version = one["metadata"]["resourceVersion"]
        try:
            await self._write(one, {"metadata": {"finalizers": left or None, "resourceVersion": version}})
        except NotFound:
            return

    async def _volume(self, one: Object) -> Object:
        name = at(one, "spec.source.persistentVolumeName")
        if not name:
            raise InvalidArgument("Only volumes of a PersistentVolume can be attached")
        volume = await self._guest.get(PVS, str(name))
        if at(volume, "spec.csi.driver") != DRIVER or not at(volume, "spec.csi.volumeHandle"):
            raise InvalidArgument(f"The PersistentVolume {name} is not of {DRIVER}")
        return volume

    async def _hold(self, one: Object, handle: str) -> Object:
        """Nothing is attached before it is sure to be detached again, even when the PersistentVolume is gone."""
        finalizers = list(one["metadata"].get("finalizers") or ())
        if FINALIZER in finalizers and annotations_of(one).get(HANDLE) == handle:
            return one
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        metadata = {
            "finalizers": finalizers,
            "annotations": {HANDLE: handle},
            "resourceVersion": one["metadata"]["resourceVersion"],
        }
        return await self._write(one, {"metadata": metadata})

    async def _tell(self, one: Object, field: str, words: str) -> None:
        """The reason, where people and the kubelet look; written once, however often it fails."""
        current = self.attachments.get(one["metadata"]["name"])
        if current is None or at(current, f"status.{field}.message") == words:
            return
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"status": {"attached": bool(at(current, "status.attached")), field: {"time": now, "message": words}}}
        try:
            await self._write(current, body, "status")
        except HcpError as error:
            log.warning(
                "the reason could not be told", extra={"attachment": one["metadata"]["name"], "error": str(error)}
            )

    async def _write(self, one: Object, body: Mapping[str, Any], subresource: str | None = None) -> Object:
        made = await self._guest.patch(
            VOLUMEATTACHMENTS, one["metadata"]["name"], None, dict(body), subresource=subresource
        )
        self.attachments.observe(made)
        return made
