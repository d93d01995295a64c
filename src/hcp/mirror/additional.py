"""Images that an image set names one by one."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.mirror.config import AdditionalImage
from hcp.mirror.plan import Item
from hcp.mirror.scope import Scope


async def plan_additional(scope: Scope, images: Iterable[AdditionalImage]) -> None:
    async def one(image: AdditionalImage) -> list[Item]:
        with scope.problems("additional", image.name):
            name = image.name.removeprefix("docker://")
            return await scope.found("additional", name, repository=image.target_repository, tag=image.target_tag)
        return []

    await scope.add_all(one(image) for image in images)
