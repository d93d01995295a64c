"""What a hosted cluster has in an external infra cluster, taken away with it.

On the management cluster all of it goes with the hosted namespace. A namespace elsewhere belongs to somebody else and
may hold the machines of several hosted clusters: what is ours there carries the cluster's infra id.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hcp.api.names import ANNOTATION_SKIP_INFRA_CLEANUP, LABEL_CSI_ROLE, LABEL_INFRA_ID
from hcp.errors import HcpError
from hcp.kube import Client, Resource
from hcp.kube.errors import ApiError, Forbidden, NotFound
from hcp.kube.resources import DATAVOLUMES, NETWORKPOLICIES, ROUTES, SERVICES, VIRTUALMACHINES, VMIS, VOLUMESNAPSHOTS
from hcp.kubevirt.infra import Infra, InfraClients, NoKubeconfig, credentials

# An infra cluster that cannot be asked for this long does not hold a deletion up any more.
GIVE_UP_AFTER = 600.0
MAX_LABEL = 63
# EndpointSlices and the disks of machines go with their owners.
_OURS = (SERVICES, VIRTUALMACHINES, VMIS)
# Volumes and snapshots that the guest has made; claims go with them. Whoever may not list them could not make them.
_VOLUMES = (VOLUMESNAPSHOTS, DATAVOLUMES)


@dataclass(frozen=True)
class Left:
    """What deletion still has to do elsewhere."""

    # Still there.
    waiting: str = ""
    # Why nobody can look or delete.
    lost: str = ""
    # There is no kubeconfig, and there will be none: waiting changes nothing.
    forever: bool = False


def given_up(objects: Iterable[Mapping[str, Any] | None], now: dt.datetime) -> bool:
    """Whether one of these was deleted long enough ago, or asks by annotation not to wait for its infra cluster."""
    for metadata in (item["metadata"] for item in objects if item is not None):
        if (metadata.get("annotations") or {}).get(ANNOTATION_SKIP_INFRA_CLEANUP) == "true":
            return True
        since = metadata.get("deletionTimestamp")
        if since and (now - dt.datetime.fromisoformat(str(since))).total_seconds() >= GIVE_UP_AFTER:
            return True
    return False


async def clear(management: Client, hosted: str, platform: Mapping[str, Any], infra_id: str) -> Left:
    """Delete what is left in an external infra cluster, and say what is still there or why it cannot be asked."""
    given = credentials(platform)
    if not given or len(infra_id) > MAX_LABEL:  # nothing can carry such a name, so nothing was made
        return Left()
    infras = InfraClients(management)
    where = f"namespace {given.get('infraNamespace') or hosted} of the infra cluster"
    try:
        infra = await infras.get(hosted, given)
    except ApiError:
        raise
    except HcpError as error:
        return Left(lost=f"{where}: {error}", forever=isinstance(error, NoKubeconfig))
    try:
        return Left(await _clear(infra, f"{LABEL_INFRA_ID}={infra_id}"))
    except ApiError as error:
        return Left(lost=f"{where}: {error}")
    finally:
        await infras.close()


async def _clear(infra: Infra, ours: str) -> str:
    left: list[str] = []
    with contextlib.suppress(Forbidden):  # then there is no ingress that we made either
        left += await _remove(infra, ROUTES, ours)
    for resource in _OURS:
        left += await _remove(infra, resource, ours)
    if not left:
        # When no machine is there any more that could hold one.
        with contextlib.suppress(Forbidden):
            for resource in _VOLUMES:
                left += await _remove(infra, resource, f"{ours},{LABEL_CSI_ROLE}")
    if left:
        return f"{', '.join(left)} in the infra cluster"
    # Last: it keeps machines apart for as long as there are any.
    with contextlib.suppress(Forbidden):  # then we could not write one either
        for item in await _list(infra, NETWORKPOLICIES, ours):
            await infra.client.delete(NETWORKPOLICIES, item["metadata"]["name"], infra.namespace, missing_ok=True)
    return ""


async def _remove(infra: Infra, resource: Resource, labels: str) -> list[str]:
    """What was still there."""
    found = await _list(infra, resource, labels)
    for item in found:
        if not item["metadata"].get("deletionTimestamp"):
            await infra.client.delete(resource, item["metadata"]["name"], infra.namespace, missing_ok=True)
    return [f"{item['kind']} {item['metadata']['name']}" for item in found]


async def _list(infra: Infra, resource: Resource, labels: str) -> list[dict[str, Any]]:
    try:
        return await infra.client.list(resource, infra.namespace, labels)
    except NotFound:
        return []
