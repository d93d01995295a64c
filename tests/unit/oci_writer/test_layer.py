"""A layer's bytes depend on its content only."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hcp.oci.writer import Layer, capability, write_layer
from hcp.oci.writer_layer import EPOCH, dropped


def _members(blob: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(blob) as archive:
        return archive.getmembers()


def _written(layer: Layer, folder: Path, *, compress: bool = True) -> Path:
    blob = write_layer(layer, folder, compress=compress)
    return folder / blob.digest.removeprefix("sha256:")


def _source_tree(folder: Path, when: int) -> Path:
    (folder / "sub").mkdir(parents=True)
    for name in ("b", "a", "sub/c"):
        (folder / name).write_text(name)
        os.utime(folder / name, (when, when))
    (folder / "link").symlink_to("a")
    return folder


def test_two_builds_of_the_same_content_have_one_digest(tmp_path: Path) -> None:
    digests = set()
    for number, when in enumerate((1, 1_000_000)):
        layer = Layer()
        layer.tree(_source_tree(tmp_path / f"src{number}", when), "opt/thing")
        layer.file("etc/x", "hello")
        digests.add(write_layer(layer, tmp_path / f"blobs{number}").digest)
    assert len(digests) == 1


def test_the_order_of_additions_does_not_matter(tmp_path: Path) -> None:
    one, two = Layer(), Layer()
    one.file("a/b", "1")
    one.file("a/c", "2")
    two.file("a/c", "2")
    two.file("a/b", "1")
    assert write_layer(one, tmp_path / "1").digest == write_layer(two, tmp_path / "2").digest


def test_parents_are_added_and_come_first(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("usr/local/bin/tool", b"x", mode=0o755)
    names = [member.name for member in _members(_written(layer, tmp_path))]
    assert names == ["usr", "usr/local", "usr/local/bin", "usr/local/bin/tool"]


def test_time_and_owner_are_fixed(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("f", b"x", uid=107, gid=107)
    (member,) = _members(_written(layer, tmp_path))
    assert (member.mtime, member.uid, member.gid, member.uname) == (EPOCH, 107, 107, "")


def test_digest_and_diff_id_are_those_of_the_bytes(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("f", b"x" * 5000)
    blob = write_layer(layer, tmp_path)
    raw = (tmp_path / blob.digest.removeprefix("sha256:")).read_bytes()
    assert blob.digest == f"sha256:{hashlib.sha256(raw).hexdigest()}"
    assert blob.diff_id == f"sha256:{hashlib.sha256(gzip.decompress(raw)).hexdigest()}"
    assert blob.size == len(raw)


def test_without_compression_both_digests_are_equal(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("f", b"x")
    blob = write_layer(layer, tmp_path, compress=False)
    assert blob.digest == blob.diff_id
    assert blob.media_type == "application/vnd.oci.image.layer.v1.tar"


def test_file_capabilities_travel_in_the_header(tmp_path: Path) -> None:
    layer = Layer()
    layer.file("bin/monitor", b"x", mode=0o755, capabilities=["net_bind_service"])
    member = _members(_written(layer, tmp_path))[-1]
    value = member.pax_headers["SCHILY.xattr.security.capability"].encode("utf-8", "surrogateescape")
    assert value == capability("net_bind_service")
    assert struct.unpack("<IIIII", value) == (0x02000001, 1 << 10, 0, 0, 0)


def test_whiteout_hides_by_name(tmp_path: Path) -> None:
    layer = Layer()
    layer.whiteout("usr/lib/libvirt/network.so")
    assert _members(_written(layer, tmp_path))[-1].name == "usr/lib/libvirt/.wh.network.so"


def test_paths_may_not_leave_the_image() -> None:
    with pytest.raises(ValueError, match="leave the image"):
        Layer().file("../etc/passwd", b"")


def test_removed_paths_and_what_is_below_are_gone() -> None:
    layer = Layer()
    layer.file("usr/share/doc/x/readme", b"")
    layer.file("usr/share/keep", b"")
    layer.remove("usr/share/doc")
    assert list(layer.entries) == ["usr/share/keep"]


def test_tar_source_keeps_links_owners_and_times(tmp_path: Path) -> None:
    (tmp_path / "z").write_bytes(b"data")
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        info = archive.gettarinfo(tmp_path / "z", "./z")
        info.uid, info.mtime = 107, 4711
        with (tmp_path / "z").open("rb") as file:
            archive.addfile(info, file)
        link = tarfile.TarInfo("./a")
        link.type, link.linkname = tarfile.LNKTYPE, "./z"
        archive.addfile(link)
        soft = tarfile.TarInfo("./soft")
        soft.type, soft.linkname = tarfile.SYMTYPE, "/z"
        archive.addfile(soft)
    with Layer() as layer:
        layer.tar(tmp_path / "in.tar")
        first, soft_member, second = _members(_written(layer, tmp_path / "blobs"))
    assert (first.name, first.isreg(), first.uid, first.mtime) == ("a", True, 107, 4711)
    assert (second.name, second.islnk(), second.linkname) == ("z", True, "a")
    assert soft_member.linkname == "/z"


def test_tar_source_drops_patterns(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        for name in ("usr/share/man/man1/x.1", "usr/bin/x"):
            archive.add(tmp_path / "f", name)
    with Layer() as layer:
        layer.tar(tmp_path / "in.tar", drop=["usr/share/man"])
        assert list(layer.entries) == ["usr/bin/x"]


@settings(deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=5))
def test_a_path_is_dropped_with_every_directory_above_it(parts: list[str]) -> None:
    path = "/".join(parts)
    assert all(dropped(path, ["/".join(parts[:length])]) for length in range(1, len(parts) + 1))
    assert not dropped(path, ["/".join([*parts, "d"])])
