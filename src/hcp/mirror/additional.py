"""Images that an image set names one by one; hcp's operator brings those along that it names."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.mirror.config import AdditionalImage
from hcp.mirror.plan import Item
from hcp.mirror.scope import Scope
from hcp.oci.reference import Reference
from hcp.publish.rewrite import NAMED_LABEL
from hcp.publish.target import OPERATOR


async def plan_additional(scope: Scope, images: Iterable[AdditionalImage]) -> None:
    async def one(image: AdditionalImage) -> list[Item]:
        with scope.problems("additional", image.name):
            name = image.name.removeprefix("docker://")
            items = await scope.found("additional", name, repository=image.target_repository, tag=image.target_tag)
            return [*items, *await _named_by(scope, Reference.parse(name))] if items else []
        return []

    await scope.add_all(one(image) for image in images)


async def _named_by(scope: Scope, ref: Reference) -> list[Item]:
    """What a published operator starts in clusters. Other images are not asked: each would cost two requests."""
    if ref.repository.rpartition("/")[2] != OPERATOR:
        return []
    config = await scope.sources.patiently(lambda: scope.sources.client(ref).config(ref))
    named = ((config.get("config") or {}).get("Labels") or {}).get(NAMED_LABEL, "").split()
    return [item for image in named for item in await scope.found("additional", image)]
