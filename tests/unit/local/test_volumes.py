"""Where the volumes of an embedded cluster live, and what is said when they cannot be bounded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.node import volumes
from hcp.local.state.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path / "one")
    found.make()
    return found


@pytest.fixture
def mkfs(tmp_path: Path) -> Path:
    """Notes what it was asked to format, as the real one would; what it makes is shown on a running cluster."""
    path = tmp_path / "mkfs"
    path.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'r+').write('made')\n")
    path.chmod(0o755)
    return path


def test_the_file_takes_no_more_of_the_disk_than_it_holds(
    layout: Layout, mkfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "missing", lambda: "")
    said: list[str] = []
    volumes.prepare(layout, mkfs, 5 << 30, said.append)
    facts = layout.volumes.stat()
    assert facts.st_size == 5 << 30
    assert facts.st_blocks * 512 < 1 << 20
    assert facts.st_mode & 0o777 == 0o600
    assert said == []


def test_a_second_run_leaves_the_file_alone(layout: Layout, mkfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "missing", lambda: "")
    volumes.prepare(layout, mkfs, 1 << 30, print)
    before = layout.volumes.stat()
    volumes.prepare(layout, mkfs, None, print)
    assert layout.volumes.stat() == before


def test_without_loop_devices_volumes_are_folders_and_that_is_said(
    layout: Layout, mkfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "missing", lambda: "the kernel has no btrfs")
    said: list[str] = []
    volumes.prepare(layout, mkfs, None, said.append)
    assert not layout.volumes.exists()
    assert "nothing bounds what they hold: the kernel has no btrfs" in said[0]
    with pytest.raises(HcpError, match="cannot be bounded here"):
        volumes.prepare(layout, mkfs, 1 << 30, said.append)


def test_volumes_of_a_cluster_made_before_are_not_hidden(
    layout: Layout, mkfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "missing", lambda: "")
    (layout.var / "lib" / "storage" / "pvc-1").mkdir(parents=True)
    said: list[str] = []
    volumes.prepare(layout, mkfs, None, said.append)
    assert not layout.volumes.exists()
    assert "the cluster was made so" in said[0]


def test_a_failed_attempt_leaves_nothing(layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "missing", lambda: "")
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no such device >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(HcpError, match="could not be made") as refused:
        volumes.prepare(layout, broken, None, print)
    assert "no such device" in str(refused.value.cause)
    assert not list(layout.root.glob("volumes*"))


@pytest.mark.parametrize(
    ("size", "has_node", "why"),
    [(1 << 29, True, "512 MiB for all volumes are too few"), (1 << 32, False, "clusters with a node")],
)
def test_sizes_that_cannot_be(layout: Layout, size: int, has_node: bool, why: str) -> None:
    with pytest.raises(HcpError, match=why):
        volumes.check(layout, size, has_node=has_node)


def test_a_size_is_for_good(layout: Layout) -> None:
    with layout.volumes.open("wb") as file:
        file.truncate(2 << 30)
    volumes.check(layout, 2 << 30, has_node=True)
    volumes.check(layout, None, has_node=True)
    with pytest.raises(HcpError, match=r"have 2.0 GiB since it was made"):
        volumes.check(layout, 3 << 30, has_node=True)
