"""Fixtures for mirroring: a source with everything in it, an empty target, and a person between them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support import image_sets
from tests.support.image_sets import Published, Site
from tests.support.registry import Registry, start


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


@pytest.fixture(scope="module")
def source(storage: Path) -> Iterator[Registry]:
    made, process = start(storage, passwords=True)
    yield made
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def published(source: Registry, storage: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    return asyncio.run(_publish(source, storage / "data", tmp_path_factory.mktemp("images")))


async def _publish(source: Registry, data: Path, folder: Path) -> Published:
    versions = ("1.36.1", "1.36.2", "1.36.3")
    found = await image_sets.publish_releases(source, data, folder, versions, big=2 << 20)
    async with image_sets.pusher(source) as to:
        await to.push(image_sets.image(folder / "tool", "tool", 3 << 20), "tools/tool", tag="v1")
        await to.push_image(image_sets.for_many_platforms(folder / "many", "many"), "tools/many", ["latest"])
    found.named = await image_sets.publish_catalog(source, folder / "operators")
    return found


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Registry]:
    (tmp_path / "target").mkdir()
    made, process = start(tmp_path / "target", passwords=True)
    yield made
    process.kill()
    process.wait()


@pytest.fixture
def site(tmp_path: Path, source: Registry, target: Registry, published: Published) -> Site:
    made = Site(tmp_path / "site", source, target)
    (made.folder / "graph.json").write_text(json.dumps(published.graph()))
    made.env["UPDATE_URL_OVERRIDE"] = str(made.folder / "graph.json")
    return made
