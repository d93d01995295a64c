"""Official builds that are no plain file: images in public registries, and sources of Go modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hcp.gomodules import archive_url
from hcp.oci.mirrors import candidates
from hcp.oci.reference import Reference
from hcp.payload.mirrors import configured


@dataclass(frozen=True)
class OfficialImage:
    """An official image. With `name` it is the component itself and gets that name; else `members` are taken out of it.

    What the tag means is asked of the registry; from there on everything is fetched and checked by digest.
    """

    image: str
    members: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @property
    def url(self) -> str:
        """What to ask to see whether its registry can be reached."""
        mirrors = configured()
        place, *_ = candidates(Reference.parse(self.image), mirrors.images)
        scheme = "http" if place.registry in mirrors.plain_http else "https"
        return f"{scheme}://{place.host}/v2/"


@dataclass(frozen=True)
class ModuleFiles:
    """Files of a Go module that match one of the patterns, put into a folder; the recipe's go.sum has the checksum."""

    module: str
    version: str
    patterns: tuple[str, ...]
    folder: str

    @property
    def url(self) -> str:
        return archive_url(self.module, self.version)
