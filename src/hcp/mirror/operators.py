"""Operators of an image set: catalogs, filtered, and the images of what is left in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.mirror import catalog as catalogs
from hcp.mirror import catalog_image
from hcp.mirror.catalog import Operator
from hcp.mirror.config import Catalog
from hcp.mirror.plan import CatalogTarget, Item, tag_for
from hcp.mirror.scope import Scope
from hcp.mirror.yaml_text import load
from hcp.oci.reference import Reference


async def plan_catalog(scope: Scope, catalog: Catalog) -> None:
    ref = Reference.parse(catalog.image.removeprefix("docker://"))
    digest = await scope.sources.digest(ref)
    pinned = ref.with_digest(digest)
    folder = await catalog_image.folder_of(scope.sources, pinned, str(ref))
    names = {package.name for package in catalog.packages}
    operators = catalogs.group(await catalog_image.documents(scope.sources, pinned, folder, names, scope.made))
    kept = _kept(scope, catalog, ref, operators)
    repository, tag = catalog.target or ref.repository, catalog.target_tag or tag_for(ref, digest)
    template = _template(catalog.template)
    await _images(scope, kept)
    if not kept:
        return
    scope.plan.catalogs.append(CatalogTarget(str(ref), repository, tag, template))
    if catalog.full and not catalog.packages:
        scope.add(await scope.found("operator", str(ref), repository=repository, tag=tag, last=True))
        return
    name = catalog_image.made_name(ref, digest)
    new = await catalog_image.rebuild(scope.sources, pinned, folder, kept, scope.made / name)
    scope.plan.add(Item("operator", str(ref), new, repository, tag, made=name, last=True))


def _kept(scope: Scope, catalog: Catalog, ref: Reference, operators: dict[str, Operator]) -> list[Operator]:
    if not catalog.packages:
        whole = [one for one in operators.values() if one.package]
        return whole if catalog.full else [catalogs.newest(one) for one in whole]
    found = []
    for package in catalog.packages:
        with scope.problems("operator", f"package {package.name} of {ref}"):
            bare = not (package.channels or package.bundles or package.lowest or package.highest)
            if catalog.full and bare and package.name in operators:
                found.append(operators[package.name])
            else:
                found.append(catalogs.chosen(operators, str(ref), package))
    return found


async def _images(scope: Scope, operators: list[Operator]) -> None:
    async def one(image: str) -> list[Item]:
        with scope.problems("operator", image):
            return await scope.found("operator", image)
        return []

    await scope.add_all(one(image) for image in dict.fromkeys(image for each in operators for image in each.images))


def _template(path: str) -> dict[str, Any] | None:
    if not path:
        return None
    import yaml

    try:
        found = load(Path(path).read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise HcpError(f"the template {path} for a CatalogSource cannot be read", cause=str(error)) from error
    if not isinstance(found, dict) or found.get("kind") != "CatalogSource":
        raise HcpError(f"the template {path} is no CatalogSource", hint="it begins with kind: CatalogSource")
    return found
