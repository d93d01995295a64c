"""Files in layers."""

from __future__ import annotations

import io
import tarfile

import pytest
from tests.support.unit.oci import layer

from hcp.oci.layers import Search, Unreadable, clean


def search(paths: list[str], *layers: io.BytesIO) -> dict[str, bytes]:
    found = Search(paths)
    for one in layers:
        found.read_layer(one)
    return found.found


def test_the_top_layer_wins_whatever_the_spelling_of_the_path() -> None:
    top, below = layer({"./a/x": b"new"}, compress=False), layer({"a/x": b"old", "/a/y": b"y"})
    assert search(["a/x", "/a/y", "a/z"], top, below) == {"a/x": b"new", "/a/y": b"y"}


def test_a_whiteout_hides_a_file_and_a_folder_below() -> None:
    top = layer({"a/.wh.x": None, "b/.wh..wh..opq": None, ".wh.c": None, "b/kept": b"top"})
    below = layer({"a/x": b"1", "b/y": b"2", "c/z": b"3", "a/w": b"4", "b/kept": b"old"})
    assert search(["a/x", "b/y", "c/z", "a/w", "b/kept"], top, below) == {"a/w": b"4", "b/kept": b"top"}


def test_hard_links_are_followed() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        info = tarfile.TarInfo("real")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"hi"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.LNKTYPE, "real"
        archive.addfile(link)
    raw.seek(0)
    assert search(["link"], raw) == {"link": b"hi"}


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfdrest", b"\x1f\x8bbroken", b"not a tar at all" * 100])
def test_unreadable_layers_are_named_as_such(data: bytes) -> None:
    with pytest.raises(Unreadable):
        Search(["a"]).read_layer(io.BytesIO(data))


def test_paths_are_cleaned() -> None:
    assert {clean(p) for p in ("a/b", "/a/b", "./a//b", "a/./b/")} == {"a/b"}
