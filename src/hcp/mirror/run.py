"""One run from the configuration to its files: planning, copying, telling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hcp.mirror import made
from hcp.mirror.additional import plan_additional
from hcp.mirror.charts import plan_chart
from hcp.mirror.config import ImageSet
from hcp.mirror.graphs import Graphs
from hcp.mirror.operators import plan_catalog
from hcp.mirror.plan import Blocked, Item, Plan, nested
from hcp.mirror.releases import plan_platform
from hcp.mirror.scope import Scope
from hcp.mirror.sources import Sources
from hcp.oci.image import Image
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust
from hcp.publish.target import Target


@dataclass(frozen=True)
class Access:
    """How the outside is reached."""

    sources: Sources
    graphs: Graphs
    # For what is fetched like any file.
    trust: Trust
    told: Callable[[str], None] = lambda _: None


async def plan_images(
    images: ImageSet, access: Access, folder: Path, *, signatures: bool = True, ignore_release_signatures: bool = False
) -> Plan:
    """Everything the image set asks for, and what of it cannot be had."""
    scope = Scope(
        access.sources,
        folder,
        Blocked(images.blocked),
        trust=access.trust,
        with_signatures=signatures,
        ignore_release_signatures=ignore_release_signatures,
    )
    access.told("finding the images of releases")
    await plan_platform(scope, images.platform, access.graphs)
    for catalog in images.catalogs:
        access.told(f"reading the catalog {catalog.image}")
        with scope.problems("operator", catalog.image):
            await plan_catalog(scope, catalog)
    for chart in images.charts:
        access.told(f"reading the chart {chart.name}")
        with scope.problems("helm", f"chart {chart.name}"):
            unknown = await plan_chart(scope, chart, folder.parent / "helm" / "charts")
            if unknown:
                access.told(
                    f"chart {chart.name}: {len(unknown)} images are made by its templates' own programs, such as "
                    f"{unknown[0]}; those that its values do not have belong into imagePaths or additionalImages"
                )
    access.told("finding additional images")
    await plan_additional(scope, images.additional)
    return scope.plan


def shortened(plan: Plan, target: Target, most: int) -> Plan:
    """For registries that allow only so many parts of a path."""
    if not most:
        return plan
    used = len(target.path.split("/")) if target.path else 0
    left = max(most - used, 1)
    items = [replace(item, repository=nested(item.repository, left)) for item in plan.items]
    catalogs = [replace(one, repository=nested(one.repository, left)) for one in plan.catalogs]
    return Plan(items, catalogs, plan.problems, plan.signatures)


async def load(item: Item, sources: Sources, folder: Path) -> Image:
    """An item where it comes from: its registry, or what was made of it here."""
    if item.made:
        return await made.read(folder / item.made, item, sources)
    return await sources.image(Reference.parse(item.source).with_digest(item.digest))
