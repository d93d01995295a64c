"""Reading a release: components, versions, boot disk."""

from hcp.release.errors import MissingComponent, NotARelease, ReleaseError
from hcp.release.reading import (
    BOOT_IMAGES,
    CONFIG_DEFINITIONS,
    IMAGE_REFERENCES,
    OLM_DEFINITIONS,
    SNAPSHOT_DEFINITIONS,
    Release,
    parse,
    read,
)

__all__ = [
    "BOOT_IMAGES",
    "CONFIG_DEFINITIONS",
    "IMAGE_REFERENCES",
    "OLM_DEFINITIONS",
    "SNAPSHOT_DEFINITIONS",
    "MissingComponent",
    "NotARelease",
    "Release",
    "ReleaseError",
    "parse",
    "read",
]
