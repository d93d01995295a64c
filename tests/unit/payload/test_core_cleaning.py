"""Giving disk space back: what goes, what stays, and what is said about it."""

from __future__ import annotations

import fcntl
from typing import Any

import pytest
from tests.support.unit.workshop import Workshop

from hcp.cli.payload.clean import text
from hcp.payload.cleaning import BUILDING, OLD, clean, disk_size
from hcp.payload.go_cache import drop_modules


def test_cleaning_keeps_what_is_used(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.engine().ensure(["tool"])
    workshop.change("tool", version="2.0")
    workshop.engine().ensure(["tool"])
    (workshop.store.root / "work" / "tool-killed" / "out").mkdir(parents=True)
    freed = clean(workshop.store, workshop.registry)
    assert [name for name, _ in freed.what[OLD]] == ["tool"]
    assert workshop.store.artifacts() == [("tool", workshop.registry.key("tool"))]
    assert not (workshop.store.root / "work").exists()
    clean(workshop.store, workshop.registry, everything=True)
    assert workshop.store.artifacts() == []


def test_cleaning_by_name(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.add("other")
    workshop.engine().ensure(["tool", "other"])
    clean(workshop.store, workshop.registry, names=("tool",))
    assert [name for name, _ in workshop.store.artifacts()] == ["other"]


def test_modules_stay_while_somebody_builds(workshop: Workshop) -> None:
    modules = workshop.store.root / "go" / "mod"
    modules.mkdir(parents=True)
    with workshop.store.lock("go-modules", shared=True):
        assert not drop_modules(workshop.store)
        assert ("Go modules, compiled packages", BUILDING) in clean(workshop.store, workshop.registry).kept
        assert modules.exists()
    assert drop_modules(workshop.store)
    assert not modules.exists()


def test_cleaning_says_what_it_frees(workshop: Workshop) -> None:
    workshop.add("tool", content="x" * 1000)
    workshop.add("other", content="y" * 500)
    workshop.engine().ensure(["tool", "other"])
    workshop.change("tool", version="2.0")
    killed = workshop.store.root / "work" / "tool-killed"
    killed.mkdir(parents=True)
    (killed / "half").write_bytes(b"z" * 70)
    before = disk_size(workshop.store.root)
    shown = clean(workshop.store, workshop.registry, dry=True)
    assert disk_size(workshop.store.root) == before
    freed = clean(workshop.store, workshop.registry)
    assert freed.what == shown.what
    assert [name for name, _ in freed.what[OLD]] == ["tool"]
    assert freed.what["unfinished builds"] == [("tool-killed", 70)]
    assert (freed.before, freed.after) == (before, disk_size(workshop.store.root))
    assert freed.size >= 1070


def test_cleaning_everything_leaves_nothing(workshop: Workshop) -> None:
    workshop.add("tool")
    [path] = workshop.engine().ensure(["tool"]).values()
    sealed = path / "bin"
    sealed.chmod(0o555)
    freed = clean(workshop.store, workshop.registry, everything=True)
    assert not freed.kept
    assert freed.after == 0
    assert not workshop.store.root.exists()
    assert clean(workshop.store, workshop.registry, everything=True).size == 0
    workshop.engine().ensure(["tool"])


def test_cleaning_leaves_what_somebody_runs_from(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.add("other")
    made = workshop.engine().ensure(["tool", "other"])
    freed = clean(
        workshop.store, workshop.registry, everything=True, user=lambda path: "in use" if path == made["tool"] else ""
    )
    assert freed.kept == [("tool", "in use")]
    assert [name for name, _ in workshop.store.artifacts()] == ["tool"]


def test_a_lock_whose_file_was_removed_protects_nothing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaning removes lock files: whoever waited for one meanwhile must end up with the one that counts."""
    store, real, calls = workshop.store, fcntl.flock, []
    file = store.root / "locks" / "x.lock"

    def flock(handle: Any, mode: int) -> None:
        real(handle, mode)
        calls.append(mode)
        if len(calls) == 1:
            file.unlink()

    monkeypatch.setattr(fcntl, "flock", flock)
    with store.lock("x") as held:
        assert held
        assert file.exists()
        with store.lock("x", wait=False) as second:
            assert not second


def test_the_report_names_kinds_sizes_and_the_cache(workshop: Workshop) -> None:
    workshop.add("tool", content="x" * 2000)
    workshop.engine().ensure(["tool"])
    shown = text(clean(workshop.store, workshop.registry, everything=True, dry=True), "/cache", True).splitlines()
    assert shown[0].split() == ["SIZE", "WOULD", "GO"]
    assert shown[1].endswith("artifacts (1): tool")
    assert "would be freed: /cache held" in shown[-1]
    done = text(clean(workshop.store, workshop.registry, everything=True), "/cache", False).splitlines()
    assert done[-1].endswith("now 0 B")
