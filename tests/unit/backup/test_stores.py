"""A folder keeps whole files only; an address says which store is meant."""

from __future__ import annotations

import datetime as dt
import stat
from pathlib import Path

import pytest

from hcp.backup import naming
from hcp.backup.stores import s3_signing
from hcp.backup.stores.base import Store
from hcp.backup.stores.choosing import choose
from hcp.backup.stores.folder import Folder
from hcp.backup.stores.s3 import Bucket
from hcp.backup.stores.s3_signing import Credentials
from hcp.errors import HcpError

NAME = naming.Name("clusters", "demo", "20260131T020000Z")
WHO = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


async def put(store: Store, data: bytes) -> None:
    async with store.writing(NAME) as sink:
        await sink.put(data)


async def test_a_file_is_whole_private_and_comes_back(tmp_path: Path) -> None:
    store = Folder(str(tmp_path / "new" / "folder"))
    assert await store.entries() == []
    await put(store, b"x" * 600_000)
    [entry] = await store.entries()
    assert (entry.name, entry.size) == (NAME, 600_000)
    file = tmp_path / "new" / "folder" / NAME.file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert b"".join([chunk async for chunk in store.reading(NAME)]) == b"x" * 600_000
    assert len(b"".join([chunk async for chunk in store.reading(NAME, 300_000)])) == 300_000
    await store.remove(NAME)
    with pytest.raises(HcpError, match="there is no backup"):
        await store.remove(NAME)
    with pytest.raises(HcpError, match="there is no backup"):
        [chunk async for chunk in store.reading(NAME)]


async def test_what_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    store = Folder(str(tmp_path))
    with pytest.raises(RuntimeError):
        async with store.writing(NAME) as sink:
            await sink.put(b"half")
            assert await store.entries() == []
            raise RuntimeError
    assert list(tmp_path.iterdir()) == []


async def test_a_backup_is_never_written_over(tmp_path: Path) -> None:
    store = Folder(str(tmp_path))
    await put(store, b"first")
    with pytest.raises(HcpError, match="is there already"):
        await put(store, b"second")
    assert (tmp_path / NAME.file).read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [tmp_path / NAME.file]


async def test_links_and_files_of_others_are_not_backups(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".unfinished-clusters_demo_20260131T020000Z.hcpbackup.7").write_text("x")
    (tmp_path / NAME.file).symlink_to("/etc/passwd")
    store = Folder(str(tmp_path))
    assert await store.entries() == []
    with pytest.raises(HcpError, match="cannot read"):
        [chunk async for chunk in store.reading(NAME)]


def bucket(name: str, prefix: str) -> Bucket:
    return Bucket(name, prefix, "https://s3.example.com", "here", WHO)


def test_an_address_says_which_store_is_meant() -> None:
    assert choose("./backups", bucket).place == "backups"
    assert choose("s3://b/", bucket).place == "s3://b"
    assert choose("s3://b/deep/er/", bucket).place == "s3://b/deep/er"
    for text in ("http://b/x", "s3://", "s3://user:secret@b/x", "s3://b?x=1"):
        with pytest.raises(HcpError):
            choose(text, bucket)


@pytest.mark.parametrize("endpoint", ["ftp://x", "https://", "https://x/path", "x:9000"])
def test_an_endpoint_is_the_address_of_a_server(endpoint: str) -> None:
    with pytest.raises(HcpError, match="no address of an object store"):
        Bucket("b", "", endpoint, "here", WHO)


def test_requests_are_signed_as_the_published_example_is() -> None:
    """The GET of an object in the documentation of signature version 4."""
    found = s3_signing.headers(
        Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        "us-east-1",
        "GET",
        "examplebucket.s3.amazonaws.com",
        "/test.txt",
        "",
        b"",
        dt.datetime(2013, 5, 24, tzinfo=dt.UTC),
        {"range": "bytes=0-9"},
    )
    assert found["authorization"].endswith("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")


def test_secrets_are_not_in_what_is_printed() -> None:
    assert WHO.secret_key not in repr(WHO)
    assert s3_signing.query_of({"b": "1 2", "a": "x/y"}) == "a=x%2Fy&b=1%202"
