"""What a new volume begins with, and whether a claim of ours is enough for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hcp.csi.kubevirt import access, objects
from hcp.csi.kubevirt.settings import InfraClass


@dataclass(frozen=True, slots=True)
class Source:
    """What a new volume begins with: nothing, a snapshot or another volume, by its handle."""

    snapshot: str = ""
    volume: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """A source in CDI's words, how many bytes a guest sees of it, and the claim they lie in."""

    source: Mapping[str, Any]
    size: int = 0
    backing: objects.Backing | None = None


def direct(infra_class: InfraClass, need: access.Access, size: int, origin: Origin) -> objects.Backing | None:
    """The claim that gives the volume by itself; None where CDI has to make it.

    An empty block volume is one already, and a class that knows how to copy does it in no time; CDI takes a pod for
    the one, and for the other more room than there was before.
    """
    if not infra_class.direct:
        return None
    before = origin.backing
    if before is None:
        plain = objects.BLANK in origin.source and infra_class.block
        return objects.Backing(infra_class.name, True, infra_class.block, size) if plain else None
    copies = "snapshot" in origin.source or infra_class.clones
    shares = before.block and access.READ_WRITE_MANY in before.access_modes
    if before.storage_class != infra_class.name or not copies or (need.shared and not shares):
        return None
    return replace(before, size=max(before.size, access.grown(before.size, origin.size, size)))
