"""Failed tests are run once more, alone, and what needed it is named: nothing is hidden by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tools import second_chance

ROOT = Path(__file__).parents[3]
TESTS = """
from pathlib import Path
def test_passes():
    with Path("passed").open("a") as file:
        file.write("x")
def test_flaky():
    before = Path("flaky").exists()
    Path("flaky").touch()
    assert before
"""
WRONG = "def test_wrong():\n    assert False\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "second_chance.py"), "mine", "-q"]
    return subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=False)


def test_who_passes_alone_is_named_as_flaky(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    done = run(tmp_path, "-n", "1", "--dist", "loadfile")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 failed. Once more" in done.stdout
    assert done.stdout.count("  test_some.py::test_flaky\n") == 2 and "Flaky: " in done.stdout
    assert (tmp_path / "passed").read_text() == "x", "only what failed is run again"
    assert (tmp_path / ".pytest_cache" / "mine").is_dir()


def test_who_fails_again_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(TESTS + WRONG)
    done = run(tmp_path)
    assert done.returncode == 1
    assert "2 failed. Once more" in done.stdout and "Flaky: " not in done.stdout


@pytest.mark.parametrize("code", [0, 2, 3, 4, 5])
def test_what_did_not_end_by_failed_tests_is_not_tried_again(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[Sequence[str]] = []

    def once(words: Sequence[str]) -> int:
        ran.append(words)
        return code

    assert second_chance.main(["mine", "tests"], once) == code
    assert [list(words) for words in ran] == [["tests", "-o", "cache_dir=.pytest_cache/mine", "--cache-clear"]]
