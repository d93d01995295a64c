"""The cgroup of a cluster on a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.local.node import cgroups


@pytest.mark.parametrize(("file", "weight"), [("cpu.shares", "16384"), ("cpu.weight", "1600")])
def test_a_cluster_weighs_more_than_one_process(
    file: str, weight: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "hcp-x"
    folder.mkdir()
    (folder / file).write_text("1")  # as the kernel makes it
    monkeypatch.setattr(cgroups, "cgroup_controllers", lambda: [tmp_path])
    cgroups.make("hcp-x")
    assert (folder / file).read_text() == weight
    assert sorted(path.name for path in folder.iterdir()) == [file]
