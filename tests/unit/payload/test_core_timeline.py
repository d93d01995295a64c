"""The timeline of builds: what is kept, and how it is shown."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.unit.workshop import Workshop

from hcp.payload import BuildContext, timeline
from hcp.payload.timeline import Span


def _span(name: str, start: float, end: float, *, cpu: float = 0.0, waited: float = 0.0, idle: float = 0.0) -> Span:
    return Span(name, "built", start, end, waited, cpu, idle, 2)


def test_every_component_leaves_a_line_with_the_processor_time_of_its_programs(workshop: Workshop) -> None:
    def burn(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])

    workshop.add("base", during=burn)
    workshop.add("top", deps=("base",))
    engine = workshop.engine()
    engine.ensure(["top"])
    base, top = timeline.kept(workshop.store.root)
    assert [base, top] == engine.made
    assert (base.component, top.component) == ("base", "top")
    assert base.cpu > 0.01
    assert base.start <= base.end <= top.start + 0.001


def test_what_is_in_the_cache_leaves_no_line(workshop: Workshop) -> None:
    workshop.add("tool")
    workshop.engine().ensure(["tool"])
    workshop.engine().ensure(["tool"])
    assert len(timeline.kept(workshop.store.root)) == 1


def test_the_picture_shows_bars_waiting_and_idle_cores() -> None:
    spans = [_span("etcd", 0, 60, cpu=120), _span("rootfs", 30, 120, cpu=30, waited=30, idle=90)]
    head, etcd, rootfs, total = timeline.text(spans).splitlines()
    assert head.endswith(", 2m00s")
    assert etcd.split("|")[1] == "█" * 24 + " " * 24
    assert rootfs.split("|")[1] == " " * 12 + "█" * 36
    assert "cpu 2m00s" in etcd
    assert "waited" not in etcd
    assert rootfs.endswith("30s + 1m30s  cpu 30s, waited 30s")
    assert "2 cores: 2m30s of their 4m00s went into builds (62%)" in total
    assert total.endswith("idle while something was built: 1m00s"), "idle time of overlapping builds counts once"


def test_runs_are_told_apart_by_a_pause() -> None:
    old, first, second = _span("old", 0, 10), _span("first", 5000, 5600), _span("second", 5500, 6000)
    assert timeline.last_run([second, old, first]) == [first, second]


def test_lines_of_another_version_are_passed_over(tmp_path: Path) -> None:
    timeline.keep(tmp_path, _span("tool", 1, 2))
    with (tmp_path / timeline.FILE).open("a") as handle:
        handle.write(json.dumps({"component": "other"}) + "\nnot even JSON\n")
    assert [span.component for span in timeline.kept(tmp_path)] == ["tool"]
    assert timeline.kept(tmp_path, since=3) == []
    assert timeline.text([]) == "Nothing was built yet."
