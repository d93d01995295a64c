"""Building payload images and pushing them into a cluster's registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hcp.local.addons.images import push, references
from hcp.local.state import parts
from hcp.local.state.lookup import existing
from hcp.payload import Progress
from hcp.payload.published import is_image, with_parts


async def push_components(
    name: str, components: Iterable[str], say: Callable[[str], None], *, build: bool = False
) -> dict[str, str]:
    """Builds what is missing, pushes what the registry lacks (of a release also every image it names), and gives each
    image's reference by digest.
    """
    layout, _ = existing(name)
    found = await parts.ensure_async(with_parts(list(components)), Progress(), build=build)
    images = {component: path for component, path in found.paths.items() if is_image(path)}
    await push(layout, images.values(), say)
    return references(images)
