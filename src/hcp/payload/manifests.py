"""Manifests of the payload name images by a placeholder, because digests are only known once images are built."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hcp.errors import HcpError

IMAGE_PLACEHOLDER = "hcp-image:"
_PLACEHOLDER = re.compile(re.escape(IMAGE_PLACEHOLDER) + r"([a-z0-9][a-z0-9-]*)")


def image_names(text: str) -> set[str]:
    """The images that a manifest needs."""
    return set(_PLACEHOLDER.findall(text))


def with_images(text: str, references: Mapping[str, str]) -> str:
    """Puts real references in place of `hcp-image:<name>`."""
    missing = image_names(text) - references.keys()
    if missing:
        raise HcpError(f"A manifest needs images that are not there: {', '.join(sorted(missing))}")
    return _PLACEHOLDER.sub(lambda match: references[match.group(1)], text)
