"""Archives: shared out by size, read where they lie, damage noticed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.mirror import history
from hcp.mirror.archive_reading import at, scan
from hcp.mirror.archive_writing import Member, blob_member, new_members, parts, write
from hcp.mirror.plan import Item, Plan
from hcp.mirror.store import BlobStore
from hcp.mirror.workspace import Workspace
from hcp.oci.image import from_layout
from hcp.oci.writer import ImageConfig, Layer, write_image


def members(*sizes: int) -> list[Member]:
    return [Member(f"blobs/sha256/{number}", size, b"") for number, size in enumerate(sizes)]


def shares(sizes: list[int], most: int, *, strict: bool = False) -> list[list[int]]:
    return [[one.size for one in share] for share in parts([], members(*sizes), most, strict=strict)]


def test_archives_are_no_larger_than_asked_for_but_for_single_blobs() -> None:
    assert shares([4000, 4000, 4000], 12_000) == [[4000, 4000], [4000]]
    assert shares([4000, 50_000, 4000], 12_000) == [[4000], [50_000], [4000]]
    assert shares([4000, 4000], 0) == [[4000, 4000]]
    assert shares([], 100) == []


def test_a_strict_archive_refuses_a_blob_that_is_too_large() -> None:
    with pytest.raises(HcpError, match="more than one archive may have") as caught:
        shares([4000, 50_000], 12_000, strict=True)
    assert "archiveSize" in str(caught.value.hint)


async def test_what_is_written_in_parts_is_read_as_one(tmp_path: Path) -> None:
    layers = []
    for number in range(4):
        layer = Layer(str(number))
        layer.file(f"data/{number}", random.Random(number).randbytes(5000))
        layers.append(layer)
    image = from_layout(write_image(tmp_path / "image", "x", layers, ImageConfig()).path)
    store = BlobStore(tmp_path / "cache")
    await store.take(image)
    await store.take(image)
    plan = Plan([Item("additional", "quay.io/x/y:1", image.digest, "x/y", "1")])
    folder = tmp_path / "disk"
    folder.mkdir()
    shared = list(parts(*new_members([image], store, set()), 12_000, strict=True))
    written = write(folder, plan, {"kind": "x"}, shared)
    assert len(written) > 2
    assert all(path.stat().st_size < 12_000 + 20_480 for path in written)
    found = scan(at(folder))
    assert found.plan.items == plan.items
    assert found.described is not None
    assert found.described["config"] == {"kind": "x"}
    for blob in found.image(image.digest).all_blobs:
        data = b"".join([data async for data in blob.read(0, lambda _: None)])
        assert data == store.path(blob.digest).read_bytes()
        rest = b"".join([data async for data in blob.read(100, lambda _: None)])
        assert rest == data[100:]
    # The next archive has the next number, and a run that was killed leaves nothing behind.
    (folder / ".mirror_000099.tar.part").write_bytes(b"half")
    (more,) = write(folder, plan, {}, [[blob_member("sha256:" + "a" * 64, 1, b"x")]])
    assert more.name == f"mirror_{len(written) + 1:06}.tar"
    assert not list(folder.glob(".*"))


def test_a_folder_without_archives_is_said(tmp_path: Path) -> None:
    with pytest.raises(HcpError, match="has no archives"):
        at(tmp_path)
    with pytest.raises(HcpError, match="there is no such folder"):
        at(tmp_path / "nowhere")
    (tmp_path / "mirror_000001.tar").write_bytes(b"no tar" * 1000)
    with pytest.raises(HcpError, match="cannot be read as an archive"):
        scan(at(tmp_path))


def test_history_by_day(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for day, text in (
        ("2026-11-01T10-00-00Z", "a"),
        ("2026-11-03T10-00-00Z", "a b"),
        ("2026-11-05T10-00-00Z", "a b c"),
    ):
        workspace.write(workspace.history / f".history-{day}", text)
    assert history.known(workspace) == {"a", "b", "c"}
    assert history.known(workspace, history.day("2026-11-04")) == {"a", "b"}
    assert history.known(workspace, history.day("2026-11-01")) == set()
    with pytest.raises(HcpError, match="is no day"):
        history.day("yesterday")


async def test_a_broken_blob_is_not_kept(tmp_path: Path) -> None:
    layer = Layer("x")
    layer.file("data", b"1234")
    layout = write_image(tmp_path / "image", "x", [layer], ImageConfig())
    image = from_layout(layout.path)
    digest = layout.manifest["layers"][0]["digest"]
    path = layout.blob(digest)
    path.chmod(0o644)
    path.write_bytes(bytes(path.stat().st_size))
    store = BlobStore(tmp_path / "cache")
    with pytest.raises(HcpError, match="is broken"):
        await store.take(image)
    assert not store.has_image(image)
    # Of others that were on their way something may be left, for the next run to go on with.
    kept = store.path(digest)
    assert not list(kept.parent.glob(f"*{kept.name}*"))
