"""What is remembered of a cluster, and what happens when it cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.lifecycle import plan
from hcp.local.state import spec
from hcp.local.state.layout import Layout, check_name, layouts, state_root
from hcp.local.state.spec import Spec


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Layout.of("demo")


def test_state_folder_follows_the_environment(tmp_path: Path, layout: Layout) -> None:
    assert state_root() == tmp_path / "hcp" / "local"
    assert layout.root == tmp_path / "hcp" / "local" / "demo"
    assert layouts() == []


def test_round_trip(layout: Layout) -> None:
    layout.make()
    wanted = Spec("demo", "cluster", 3, applied={"core": "abc"})
    spec.save(layout, wanted)
    assert spec.load(layout) == wanted
    assert layouts() == [layout]
    assert layout.spec.stat().st_mode & 0o077 == 0


def test_nothing_there(layout: Layout) -> None:
    assert spec.load(layout) is None


def test_state_of_another_version_is_refused(layout: Layout) -> None:
    layout.make()
    layout.spec.write_text(json.dumps({"format": 99, "name": "demo"}))
    with pytest.raises(HcpError, match="another version") as refused:
        spec.load(layout)
    assert "--purge" in (refused.value.hint or "")


@pytest.mark.parametrize("text", ["", "not json", '{"format": 2, "surprise": 1}', "[]"])
def test_damaged_state_is_one_sentence(layout: Layout, text: str) -> None:
    layout.make()
    layout.spec.write_text(text)
    with pytest.raises(HcpError) as refused:
        spec.load(layout)
    assert "--purge" in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["a", "demo-2", "x" * 30])
def test_good_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "Demo", "a b", "x" * 31, "../up", "a.b"])
def test_bad_names(name: str) -> None:
    with pytest.raises(HcpError):
        check_name(name)


def test_new_api_cluster_gets_three_different_ports(layout: Layout) -> None:
    made = plan.plan(layout, "api")
    assert len({made.api_port, made.etcd_port, made.etcd_peer_port}) == 3
    assert plan.plan(layout, None) == made
    assert made.server == f"https://127.0.0.1:{made.api_port}"


def test_a_name_cannot_change_between_api_and_cluster(layout: Layout) -> None:
    plan.plan(layout, "api")
    with pytest.raises(HcpError, match="taken by a cluster of profile api"):
        plan.plan(layout, "cluster")


def test_profile_grows_but_does_not_shrink(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "need_root", lambda profile: None)
    layout.make()
    spec.save(layout, Spec("demo", "cluster", 1))
    assert plan.plan(layout, "kubevirt").profile == "kubevirt"
    spec.save(layout, Spec("demo", "kubevirt", 1))
    with pytest.raises(HcpError, match="not removed"):
        plan.plan(layout, "cluster")


def test_root_is_asked_for_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(HcpError, match="needs root") as refused:
        plan.need_root("cluster")
    assert "--profile api" in (refused.value.hint or "")


def test_numbers_of_other_clusters_are_left_alone(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "need_root", lambda profile: None)
    monkeypatch.setattr("hcp.local.host.checks.range_owner", lambda number: "a VPN" if number == 1 else None)
    other = Layout.of("other")
    other.make()
    spec.save(other, Spec("other", "cluster", 0))
    assert plan.plan(layout, "cluster").number == 2


def test_all_ranges_taken_says_by_whom(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "need_root", lambda profile: None)
    monkeypatch.setattr("hcp.local.host.checks.range_owner", lambda number: "network link wg0 (10.88.0.9)")
    with pytest.raises(HcpError, match="wg0"):
        plan.plan(layout, "cluster")


def test_write_file_is_silent_when_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    assert spec.write_file(path, "one")
    stamp = path.stat().st_ino
    assert not spec.write_file(path, "one")
    assert path.stat().st_ino == stamp
    assert spec.write_file(path, "two")
    assert path.read_text() == "two"


def test_what_was_added_once_stays() -> None:
    one = Spec("one", "cluster", 1)
    assert not one.has_storage
    more = one.with_extras(["storage"])
    assert more.has_storage
    assert more.with_extras([]).has_storage
    assert more.with_extras(["storage"]).extras == ["storage"]
