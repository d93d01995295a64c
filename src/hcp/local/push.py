"""Building payload images and pushing them into a cluster's registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hcp.local import parts
from hcp.local.addons.images import push, references
from hcp.local.lookup import existing
from hcp.payload import Progress


async def push_components(name: str, components: Iterable[str], say: Callable[[str], None]) -> dict[str, str]:
    """Builds what is missing, pushes what the registry lacks, and returns each image's reference by digest."""
    layout, _ = existing(name)
    found = parts.ensure(components, Progress())
    await push(layout, found.paths.values(), say)
    return references(found.paths)
