"""Volumes in the tour: only where their parts are there already. Nobody waits for compilers to see a claim."""

from __future__ import annotations

from hcp.payload import find
from hcp.payload.estimates import to_make
from hcp.payload.image import REGISTRY
from hcp.payload.progress import about
from hcp.payload.published import with_parts
from hcp.payload.registry import default_registry
from hcp.payload.release import REPOSITORY, with_storage

RELEASE = with_storage("1.36")


def there() -> bool:
    """Whether the release with storage and every image it names can be pushed at once."""
    return all(find(part) is not None for part in with_parts([RELEASE]))


def image(release: str = RELEASE) -> str:
    """How the embedded registry calls a release."""
    return f"{REGISTRY}/{REPOSITORY}:{default_registry().get(release).version}"


def how_to_have_them() -> str:
    """For who has seen the tour without."""
    return f"hcp payload build {RELEASE} (about {about(to_make([RELEASE]))})"
