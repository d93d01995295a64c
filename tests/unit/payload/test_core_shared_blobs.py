"""A layer that several images share is asked for once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hcp.payload import shared_blobs

CONTENT = b"a layer"
HEX = hashlib.sha256(CONTENT).hexdigest()
DIGEST = f"sha256:{HEX}"


def _target(folder: Path, name: str) -> Path:
    found = folder / name / "blobs" / "sha256"
    found.mkdir(parents=True)
    return found / HEX


def _get(target: Path, cache: Path, fetch: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(shared_blobs.get(DIGEST, target, cache, fetch))


def _fetching(target: Path, asked: list[Path], content: bytes = CONTENT) -> Callable[[], Awaitable[None]]:
    async def fetch() -> None:
        asked.append(target)
        target.write_bytes(content)

    return fetch


def test_what_another_image_of_the_cache_has_is_taken_from_there(tmp_path: Path) -> None:
    has = _target(tmp_path, "artifacts/image-a/1/image")
    has.write_bytes(CONTENT)
    target, asked = _target(tmp_path, "work/b"), list[Path]()
    _get(target, tmp_path, _fetching(target, asked))
    assert asked == []
    assert target.samefile(has)


def test_what_another_image_has_damaged_is_fetched(tmp_path: Path) -> None:
    _target(tmp_path, "artifacts/image-a/1/image").write_bytes(b"a lawyer")
    target, asked = _target(tmp_path, "work/b"), list[Path]()
    _get(target, tmp_path, _fetching(target, asked))
    assert asked == [target]
    assert target.read_bytes() == CONTENT


def _second(first: Path, second: Path, cache: Path, end: Callable[[], None]) -> list[Path]:
    """The second asks while the first fetches, which ends as it is told. Gives who asked the registry, in order."""
    asked: list[Path] = []

    async def play() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            asked.append(first)
            begun.set()
            await go_on.wait()
            end()

        one = asyncio.create_task(shared_blobs.get(DIGEST, first, cache, slow))
        await begun.wait()
        two = asyncio.create_task(shared_blobs.get(DIGEST, second, cache, _fetching(second, asked)))
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(one, two, return_exceptions=True)

    asyncio.run(play())
    return asked


def test_what_another_image_is_fetching_is_waited_for(tmp_path: Path) -> None:
    one, two = _target(tmp_path, "work/a"), _target(tmp_path, "work/b")
    assert _second(one, two, tmp_path, lambda: none(one.write_bytes(CONTENT))) == [one]
    assert two.read_bytes() == CONTENT


def test_who_waited_for_one_that_failed_asks_for_itself(tmp_path: Path) -> None:
    one, two = _target(tmp_path, "work/a"), _target(tmp_path, "work/b")

    def fail() -> None:
        raise ConnectionError("it broke off")

    assert _second(one, two, tmp_path, fail) == [one, two]
    assert two.read_bytes() == CONTENT


def test_what_another_image_has_fetched_and_waits_for_the_rest_of_is_taken_too(tmp_path: Path) -> None:
    one, two, three, asked = (*(_target(tmp_path, f"work/{name}") for name in "abc"), list[Path]())
    _get(one, tmp_path, _fetching(one, asked))
    _get(two, tmp_path, _fetching(two, asked))
    assert asked == [one]
    for path in (one, two):
        path.unlink()
    _get(three, tmp_path, _fetching(three, asked))
    assert asked == [one, three], "it had gone meanwhile"


def none(_: object) -> None:
    """For a lambda that gives nothing."""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_blobs, "_places", {})
