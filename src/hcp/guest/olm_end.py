"""Ending operator-lifecycle-manager in a guest that has no catalog any more.

It stays while something is installed: only it takes operators, their rights and their APIs away again. What it is
asked to take away last is its own server of packages; it has to be there to do that, so all else goes afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.guest import olm
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import APISERVICES, CLUSTERSERVICEVERSIONS, NAMESPACES

# Not the copies that show an operator in each namespace it looks after.
_ORIGINALS = "!olm.copiedFrom"


class Left(Enum):
    """What there is of it."""

    NOTHING = "nothing"
    # Something is installed.
    NEEDED = "needed"
    ENDING = "ending"


async def end(client: Client) -> Left:
    """One step towards its end, if it may end. Called again until nothing is left."""
    namespace = await client.get_or_none(NAMESPACES, olm.NAMESPACE)
    if namespace is None or (namespace["metadata"].get("labels") or {}).get(LABEL_MANAGED_BY) != MANAGED_BY:
        return Left.NOTHING
    if namespace["metadata"].get("deletionTimestamp"):
        return Left.ENDING
    try:
        found = await client.list(CLUSTERSERVICEVERSIONS, None, _ORIGINALS)
    except NotFound:
        found = []
    own = [one for one in found if _place(one) == (olm.NAMESPACE, olm.PACKAGES)]
    if len(found) > len(own):
        return Left.NEEDED
    if own:
        if not own[0]["metadata"].get("deletionTimestamp"):
            await client.delete(CLUSTERSERVICEVERSIONS, olm.PACKAGES, olm.NAMESPACE, missing_ok=True)
        return Left.ENDING
    # An API that nobody serves would be in the way of every tool that asks for all kinds.
    await client.delete(APISERVICES, f"v1.packages.{olm.GROUP}", missing_ok=True)
    for one in olm.cluster_rights():
        await client.delete(await client.resource_for(one), one["metadata"]["name"], missing_ok=True)
    await client.delete(NAMESPACES, olm.NAMESPACE, missing_ok=True)
    return Left.ENDING


def _place(one: Mapping[str, Any]) -> tuple[str, str]:
    return str(one["metadata"].get("namespace")), str(one["metadata"]["name"])
