"""Backups in an object store that checks signatures: `rclone serve s3`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.s3_server import serving

from hcp.backup.naming import Name
from hcp.backup.stores import s3
from hcp.backup.stores.s3 import Bucket
from hcp.backup.stores.s3_signing import Credentials
from hcp.errors import HcpError

NAME = Name("clusters", "demo", "20260131T020000Z")
WHO = Credentials("access", "a/secret+with=signs")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("s3")
    (home / "backups").mkdir()
    with serving(home, free_port(), WHO.access_key, WHO.secret_key) as url:
        yield url, home


@pytest.fixture
async def bucket(server: tuple[str, Path]) -> AsyncIterator[Bucket]:
    made = Bucket("backups", "deep/er", server[0], "us-east-1", WHO)
    yield made
    await made.close()


async def content(store: Bucket, most: int = 0) -> bytes:
    return b"".join([chunk async for chunk in store.reading(NAME, most)])


@pytest.mark.parametrize("size", [10, 5 * 1024**2 + 3], ids=["at once", "in parts"])
async def test_a_backup_goes_in_whole_and_comes_back(
    bucket: Bucket, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART", 2 * 1024**2)
    data = os.urandom(size)
    assert await bucket.entries() == []
    async with bucket.writing(NAME) as sink:
        for start in range(0, size, 700_000):
            await sink.put(data[start : start + 700_000])
        assert await bucket.entries() == []
    [entry] = await bucket.entries()
    assert (entry.name, entry.size) == (NAME, size)
    assert await content(bucket) == data
    assert await content(bucket, 7) == data[:7]
    with pytest.raises(HcpError, match="already"):
        async with bucket.writing(NAME):
            pass
    await bucket.remove(NAME)
    assert await bucket.entries() == []
    with pytest.raises(HcpError, match="there is no backup"):
        await bucket.remove(NAME)
    with pytest.raises(HcpError, match="there is no backup"):
        await content(bucket)


async def test_what_breaks_off_is_taken_back(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "PART", 1024**2)
    with pytest.raises(RuntimeError):
        async with bucket.writing(NAME) as sink:
            await sink.put(b"x" * 3 * 1024**2)
            raise RuntimeError
    assert await bucket.entries() == []


async def test_wrong_credentials_and_a_missing_bucket_are_told(server: tuple[str, Path]) -> None:
    for bucket, words in (
        (Bucket("backups", "", server[0], "us-east-1", Credentials("access", "wrong")), "refuses"),
        (Bucket("none", "", server[0], "us-east-1", WHO), "NoSuchBucket"),
    ):
        try:
            with pytest.raises(HcpError, match=words):
                await bucket.entries()
        finally:
            await bucket.close()
