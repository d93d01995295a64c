"""A run of the storage suite from its first shard to its record; the suite is a program that tells what it is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conformance import storage, storage_record, suite
from conformance.run import KUBERNETES

_HEAD = "[sig-storage] External Storage [Driver: csi.kubevirt.io] [Testpattern: Dynamic PV (default fs)]"
GOOD, MUTE, CUT = (f"{_HEAD} {group} should work" for group in ("provisioning", "volumes", "volumeMode"))
SUITE = f"""#!{sys.executable}
import re, sys
from pathlib import Path
flags = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[1:])
names = [name for name in {[GOOD, MUTE, CUT]!r} if re.search(flags["ginkgo.focus"], name)]
dry = "ginkgo.dry-run" in flags
with Path("asked").open("a") as asked:
    asked.writelines("" if dry else name + chr(10) for name in names)
if names == [{MUTE!r}] and not dry and not Path("well").exists():
    sys.exit("the API server is away")
cases = "".join(f'<testcase name="[It] {{name}}" time="3"/>' for name in names)
text = f"<testsuites><testsuite>{{cases}}</testsuite></testsuites>"
cut = names == [{CUT!r}] and not dry and not Path("well").exists()
(Path(flags["report-dir"]) / "junit_01.xml").write_text(text[:60] if cut else text)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "e2e.test"
    program.parent.mkdir()
    program.write_text(SUITE)
    program.chmod(0o755)
    monkeypatch.setattr("hcp.payload.ensure", lambda _: {suite.PAYLOAD: tmp_path, KUBERNETES: tmp_path})
    monkeypatch.setattr(sys, "argv", ["storage"])
    monkeypatch.chdir(tmp_path)
    for name in ("KNOWN", "AGAIN", "MINUTES", "NAME", "ARGS", "FOCUS", "PARALLEL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"KUBECONFIG": "guest", "IMAGES": "upstream", "SHARD": "1", "RESULTS": "results"}.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def asked(place: Path) -> list[str]:
    return (place / "asked").read_text().splitlines()


def record(place: Path, folder: str = "results") -> dict[str, str]:
    found = storage_record.read((place / folder / storage.RECORD).read_text())
    return {name: one.state for name, one in found.items()}


def test_a_shard_without_a_whole_report_does_not_end_the_run(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert storage.main() == 1
    assert sorted(asked(place)) == sorted([GOOD, MUTE, CUT])
    assert record(place) == {GOOD: "passed"}
    said = capfd.readouterr()
    assert "so its specs count as not run: The suite ended with code 1 and without a report" in said.err
    assert "the API server is away" in said.err
    assert said.err.count("left no whole report") == 2
    assert said.out.splitlines()[-1].split() == ["together", "3", "1", "0", "0", "2", "33%"]


def test_a_spec_that_was_ended_with_its_shard_counts_as_not_run(place: Path) -> None:
    (place / "well").touch()
    shard = place / "results" / "shard-001"
    shard.mkdir(parents=True)
    ended = '<error message="interrupted" type="interrupted">Interrupted by User</error>'
    cases = f'<testcase name="[It] {GOOD}" time="3"/><testcase name="[It] {CUT}" time="2">{ended}</testcase>'
    (shard / "junit_01.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert storage.main() == 0
    assert sorted(asked(place)) == sorted([MUTE, CUT])
    assert record(place) == dict.fromkeys((GOOD, MUTE, CUT), "passed")


def test_a_run_goes_on_where_another_machine_was(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.main()
    (place / "asked").unlink()
    (place / "well").touch()
    monkeypatch.setenv("KNOWN", str(place / "results" / storage.RECORD))
    monkeypatch.setenv("RESULTS", "elsewhere")  # nothing is there
    assert storage.main() == 0
    assert sorted(asked(place)) == sorted([MUTE, CUT])
    assert record(place, "elsewhere") == dict.fromkeys((GOOD, MUTE, CUT), "passed")


def test_a_record_that_has_everything_is_taken_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "well").touch()
    storage.main()
    (place / "asked").unlink()
    monkeypatch.setenv("KNOWN", str(place / "results" / storage.RECORD))
    monkeypatch.setenv("RESULTS", "elsewhere")
    monkeypatch.setattr(sys, "argv", ["storage", "volumes"])
    assert storage.main() == 0
    assert asked(place) == []
    assert set(record(place, "elsewhere")) == {GOOD, MUTE, CUT}, "other groups are not lost"


@pytest.mark.parametrize("content", [None, "state\tseconds\tspec\twhy\npassed\t3\n"])
def test_a_record_that_cannot_be_read_is_told_before_anything_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], content: str | None
) -> None:
    if content is not None:
        (place / "record").write_text(content)
    monkeypatch.setenv("KNOWN", "record")
    assert storage.main() == 1
    assert "KNOWN=record is no record of a run: " in capfd.readouterr().err
    assert not (place / "asked").exists()
