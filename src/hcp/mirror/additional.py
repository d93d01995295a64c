"""Images that an image set names one by one."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.mirror.config import AdditionalImage
from hcp.mirror.scope import Scope
from hcp.oci.push import together


async def plan_additional(scope: Scope, images: Iterable[AdditionalImage]) -> None:
    async def one(image: AdditionalImage) -> None:
        with scope.problems("additional", image.name):
            name = image.name.removeprefix("docker://")
            await scope.add("additional", name, repository=image.target_repository, tag=image.target_tag)

    await together(one(image) for image in images)
