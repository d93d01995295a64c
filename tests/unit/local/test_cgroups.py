"""The cgroup of a cluster on a busy machine."""

from __future__ import annotations

import os
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


def tree(root: Path, offered: str) -> Path:
    """A hierarchy of cgroup v2 as systemd leaves it, and the cluster's cgroup as the kernel fills a new one."""
    for folder in (root, root / "hcp-x"):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text(f"{offered}\n")
        (folder / "cgroup.subtree_control").write_text("")
        (folder / "cgroup.procs").write_text("")
    (root / "hcp-x" / "cpu.weight").write_text("100")
    return root / "hcp-x"


def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """What is written, in its order: to the kernel every write is an order of its own."""
    seen: list[tuple[Path, str]] = []
    write = Path.write_text

    def note(path: Path, text: str) -> int:
        seen.append((path, text))
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", note)
    return seen


def test_on_cgroup_v2_a_node_gets_what_the_machine_offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree(tmp_path, "cpuset cpu io memory hugetlb pids rdma misc")
    monkeypatch.setattr(cgroups, "cgroup_controllers", lambda: [tmp_path])
    seen = written(monkeypatch)
    cgroups.make("hcp-x")
    wanted = ["+cpuset", "+cpu", "+io", "+memory", "+hugetlb", "+pids"]
    for place in (tmp_path, folder):
        assert [text for path, text in seen if path == place / "cgroup.subtree_control"] == wanted
    # A cgroup has the controllers that its parent hands on: first above, then below.
    order = [path.parent for path, _ in seen if path.name == "cgroup.subtree_control"]
    assert order == [tmp_path] * 6 + [folder] * 6
    assert (folder / "cpu.weight").read_text() == "1600"


def test_one_controller_that_is_refused_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses cpu where a real-time process sits in a cgroup, and hugetlb may not be there at all."""
    folder = tree(tmp_path, "cpu memory pids")
    monkeypatch.setattr(cgroups, "cgroup_controllers", lambda: [tmp_path])
    taken: list[str] = []
    write = Path.write_text

    def kernel(path: Path, text: str) -> int:
        if text == "+cpu":
            raise OSError(22, "Invalid argument")
        if path == folder / "cgroup.subtree_control":
            taken.append(text)
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", kernel)
    cgroups.make("hcp-x")
    assert taken == ["+memory", "+pids"]


def test_on_cgroup_v2_a_node_does_not_stay_where_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in a session or a service, which systemd may end, and not where controllers are handed on."""
    folder = tree(tmp_path, "cpu memory")
    monkeypatch.setattr(cgroups, "cgroup_controllers", lambda: [tmp_path])
    cgroups.join("hcp-x")
    assert (folder / "node" / "cgroup.procs").read_text() == str(os.getpid())
    assert (folder / "cgroup.procs").read_text() == ""


def test_on_cgroup_v1_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hcp-x").mkdir()
    monkeypatch.setattr(cgroups, "cgroup_controllers", lambda: [tmp_path])
    cgroups.join("hcp-x")
    assert list((tmp_path / "hcp-x").iterdir()) == []
