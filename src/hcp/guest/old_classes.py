"""Classes of ours inside a guest that the HostedCluster does not ask for any more, or not like this.

What a class means cannot be changed in Kubernetes, so it is made anew; volumes remember what they were made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.api.paths import annotations_of
from hcp.csi.kubevirt import DRIVER
from hcp.guest.storage import MADE_AS
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import STORAGECLASSES, VOLUMESNAPSHOTCLASSES

Object = Mapping[str, Any]
_FIXED = ("provisioner", "driver", "parameters", "reclaimPolicy", "volumeBindingMode", "deletionPolicy")


def outdated(live: Iterable[Object], wanted: Iterable[Object]) -> list[str]:
    """Names of those that have to go; what others made for the same driver is theirs."""
    fitting = {one["metadata"]["name"]: one for one in wanted}
    ours = [one for one in live if DRIVER in (one.get("provisioner"), one.get("driver")) and _made_by_us(one)]
    return [one["metadata"]["name"] for one in ours if not _same(one, fitting.get(one["metadata"]["name"]))]


def _made_by_us(live: Object) -> bool:
    name: str = live["metadata"]["name"]
    return annotations_of(live).get(MADE_AS) == name


def _same(live: Object, wanted: Object | None) -> bool:
    return wanted is not None and all((live.get(key) or None) == (wanted.get(key) or None) for key in _FIXED)


async def remove(client: Client, objects: Iterable[Object]) -> None:
    """Before the others are written. `objects` is everything that is wanted in the guest."""
    objects = list(objects)
    for resource in (STORAGECLASSES, VOLUMESNAPSHOTCLASSES):
        try:
            live = await client.list(resource, None, f"{LABEL_MANAGED_BY}={MANAGED_BY}")
        except NotFound:
            continue  # a guest without snapshots does not know the kind
        for name in outdated(live, [one for one in objects if one["kind"] == resource.kind]):
            await client.delete(resource, name, missing_ok=True)
