"""The engine: what is built, in which order, and what is never used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.unit.workshop import Workshop

from hcp.errors import HcpError
from hcp.payload import BuildContext, readable


def test_dependencies_are_built_first_and_given_to_the_build(workshop: Workshop) -> None:
    seen: list[str] = []
    workshop.add("top", deps=("base",), during=lambda ctx: seen.append((ctx.dep("base") / "bin/base").read_text()))
    workshop.add("base")
    paths = workshop.engine().ensure(["top"])
    assert workshop.built == ["base", "top"]
    assert seen == ["binary of base\n"]
    assert list(paths) == ["top"]


def test_a_second_run_builds_nothing(workshop: Workshop) -> None:
    workshop.add("tool")
    first = workshop.engine().ensure(["tool"])
    assert workshop.engine().ensure(["tool"]) == first
    assert workshop.built == ["tool"]


def test_a_finished_component_does_not_need_what_it_was_made_of(workshop: Workshop) -> None:
    workshop.add("base")
    workshop.add("image", deps=("base",))
    workshop.engine().ensure(["image"])
    workshop.store.discard("base", workshop.registry.key("base"))
    workshop.engine().ensure(["image"])
    assert workshop.built == ["base", "image"]


@pytest.mark.parametrize("field", ["inputs", "version"])
def test_the_key_changes_with_recipe_and_version(workshop: Workshop, field: str) -> None:
    workshop.add("tool")
    workshop.add("image", deps=("tool",))
    before = {name: workshop.registry.key(name) for name in ("tool", "image")}
    workshop.change("tool", **{field: (lambda: "other flags") if field == "inputs" else "2.0"})
    after = {name: workshop.registry.key(name) for name in ("tool", "image")}
    assert before["tool"] != after["tool"]
    assert before["image"] != after["image"]


def test_a_damaged_file_is_made_again(workshop: Workshop) -> None:
    workshop.add("tool")
    path = workshop.engine().ensure(["tool"])["tool"] / "bin/tool"
    path.chmod(0o644)
    path.write_text("binary of tool!")  # same length: only the content tells
    assert workshop.engine().find("tool") is None
    again = workshop.engine().ensure(["tool"])["tool"]
    assert (again / "bin/tool").read_text() == "binary of tool\n"
    assert workshop.built == ["tool", "tool"]
    assert any("damaged (bin/tool has changed)" in line for line in workshop.lines())


@pytest.mark.parametrize("harm", ["missing", "extra", "metadata"])
def test_an_artifact_with_other_files_is_not_used(workshop: Workshop, harm: str) -> None:
    workshop.add("tool")
    folder = workshop.engine().ensure(["tool"])["tool"]
    if harm == "missing":
        (folder / "bin/tool").unlink()
    elif harm == "extra":
        (folder / "bin/more").write_text("x")
    else:
        (folder / ".hcp-artifact.json").write_text("{")
    assert workshop.engine().find("tool") is None


def test_a_failed_build_leaves_nothing_usable(workshop: Workshop) -> None:
    def fail(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", "echo the compiler is unhappy >&2; exit 3"])

    workshop.add("tool", during=fail)
    with pytest.raises(HcpError, match="ended with code 3") as caught:
        workshop.engine().ensure(["tool"])
    assert "the compiler is unhappy" in str(caught.value)
    assert workshop.engine().find("tool") is None


def test_a_tool_that_was_killed_is_said_so(workshop: Workshop) -> None:
    def build(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", "kill -9 $$"])

    workshop.add("tool", during=build)
    with pytest.raises(HcpError, match="was killed by signal 9"):
        workshop.engine().ensure(["tool"])


def test_a_build_without_its_outputs_is_an_error(workshop: Workshop) -> None:
    workshop.add("tool", during=lambda ctx: (ctx.out / "bin/tool").unlink())
    with pytest.raises(HcpError, match="ended without bin/tool"):
        workshop.engine().ensure(["tool"])


def test_a_missing_program_is_named(workshop: Workshop) -> None:
    def build(ctx: BuildContext) -> None:
        ctx.run(["no-such-compiler"])

    workshop.add("tool", during=build)
    with pytest.raises(HcpError, match="needs the program no-such-compiler"):
        workshop.engine().ensure(["tool"])


def test_two_overlapping_runs_share_one_build(workshop: Workshop) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow(ctx: BuildContext) -> None:
        entered.set()
        assert go_on.wait(30)

    workshop.add("tool", during=slow)
    results: list[Path] = []

    def run() -> None:
        results.append(workshop.engine().ensure(["tool"])["tool"])

    first, second = threading.Thread(target=run), threading.Thread(target=run)
    first.start()
    assert entered.wait(30)
    second.start()
    while not any("another run is making it" in line for line in workshop.lines()):
        second.join(0.01)
    go_on.set()
    first.join(30)
    second.join(30)
    assert workshop.built == ["tool"]
    assert results[0] == results[1]
    assert any("made by another run" in line for line in workshop.lines())


_KILLED = """
import os, signal, sys
from contextlib import ExitStack
from pathlib import Path
sys.path.insert(0, {helpers!r})
from tests.support.unit.workshop import Workshop

def die(ctx):
    compiled = ctx.cache / "go" / "build"
    compiled.mkdir(parents=True)
    (compiled / "package").write_text("half of the work")
    os.kill(os.getpid(), signal.SIGKILL)

shop = Workshop(Path({root!r}))
shop.add("base")
shop.add("tool", deps=("base",), during=die)
shop.engine().ensure(["tool"])
"""


def test_a_killed_build_goes_on_where_it_was(workshop: Workshop, tmp_path: Path) -> None:
    helpers = str(Path(__file__).parents[3])
    script = _KILLED.format(helpers=helpers, root=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    kept: list[str] = []
    workshop.add("base")
    workshop.add("tool", deps=("base",), during=lambda ctx: kept.append((ctx.cache / "go/build/package").read_text()))
    assert workshop.engine().find("tool") is None
    workshop.engine().ensure(["tool"])
    assert workshop.built == ["tool"], "what was finished before is not built again"
    assert kept == ["half of the work"]
    left = {path.name.partition("-")[0] for path in (workshop.store.root / "work").iterdir()}
    assert left <= {"dropped"}, "work folders go when the component is done; what Go left is being removed"
    assert not (workshop.store.root / "go" / "build").exists(), "compiled packages go when the run is done"


def test_artifacts_are_read_only(workshop: Workshop) -> None:
    workshop.add("tool")
    path = workshop.engine().ensure(["tool"])["tool"] / "bin/tool"
    assert path.stat().st_mode & 0o222 == 0


def test_an_unknown_component_is_named_with_what_is_like_it(workshop: Workshop) -> None:
    workshop.add("tool")
    with pytest.raises(HcpError, match='no payload component "toool"') as caught:
        workshop.engine().ensure(["toool"])
    assert "tool" in (caught.value.hint or "")


def test_components_must_not_depend_on_each_other(workshop: Workshop) -> None:
    workshop.add("a", deps=("b",))
    workshop.add("b", deps=("a",))
    with pytest.raises(ValueError, match="a → b → a"):
        workshop.registry.order(["a"])


def test_a_cache_that_cannot_be_written_is_said(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    workshop.add("tool")
    with pytest.raises(HcpError, match="cannot be written"):
        workshop.engine().ensure(["tool"])


def test_a_full_disk_is_noticed_before_the_build(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("usage", (), {"free": 1 << 30})
    monkeypatch.setattr("hcp.payload.engine.shutil.disk_usage", lambda path: usage)
    workshop.add("tool")
    with pytest.raises(HcpError, match=r"has only 1\.0 GiB left"):
        workshop.engine().ensure(["tool"])
    assert workshop.built == []


@pytest.mark.parametrize(
    ("output", "advice"),
    [("dial tcp: lookup proxy.golang.org: no such host", "could not be reached"), ("No space left on device", "full")],
)
def test_common_troubles_come_with_advice(workshop: Workshop, output: str, advice: str) -> None:
    def build(ctx: BuildContext) -> None:
        ctx.run(["sh", "-c", f"echo '{output}'; exit 1"])

    workshop.add("tool", during=build)
    with pytest.raises(HcpError) as caught:
        workshop.engine().ensure(["tool"])
    assert advice in (caught.value.hint or "")


def test_the_umask_of_whoever_builds_does_not_matter(workshop: Workshop) -> None:
    before = os.umask(0o077)
    try:
        workshop.add("tool", during=lambda ctx: (ctx.out / "etc").mkdir())
        [path] = workshop.engine().ensure(["tool"]).values()
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    assert (path / "etc").stat().st_mode & 0o777 == 0o755
    assert (path / "bin" / "tool").stat().st_mode & 0o777 == 0o444


def test_of_several_who_build_the_last_gives_the_umask_back() -> None:
    before = os.umask(0o077)
    try:
        first, second = readable.by_everybody(), readable.by_everybody()
        with ExitStack() as one, ExitStack() as two:
            one.enter_context(first)
            two.enter_context(second)
            one.close()
            assert os.umask(0o022) == 0o022
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
