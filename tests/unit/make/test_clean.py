"""`make clean`: whatever tools leave in the folder, which is what git is told to ignore, goes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
PLACES = {"*.egg-info": "src/hcp.egg-info", "__pycache__": "tests/unit/__pycache__"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a path with spaces"
    for name in ("src/hcp/csi/wire", "tests/unit", "bench", "conformance", "tools"):
        (made / name).mkdir(parents=True)
    shutil.copy(REPOSITORY / "Makefile", made)
    return made


def make(folder: Path, *words: str) -> str:
    env = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    env.pop("MAKEFLAGS", None)
    # make itself speaks in the letters of the locale, which need not be UTF-8; -s keeps it silent.
    done = subprocess.run(
        ["make", "-s", "-C", str(folder), *words], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_git_ignores_goes(folder: Path) -> None:
    before = files(folder)
    ignored = [line.strip("/") for line in (REPOSITORY / ".gitignore").read_text().splitlines() if line]
    for pattern in ignored:
        place = folder / PLACES.get(pattern, pattern)
        place.mkdir(parents=True)
        (place / "file").write_text("x")
    assert len(files(folder)) >= len(before) + 2 * len(ignored)
    make(folder, "clean")
    assert files(folder) == before
    make(folder, "clean")


def test_the_cache_stays_and_is_named(folder: Path) -> None:
    cache = folder.parent / "cache" / "hcp"
    cache.mkdir(parents=True)
    (cache / "file").write_bytes(b"x" * 5000)
    told = make(folder, "clean")
    assert str(cache) in told
    assert "make clean-all" in told
    assert (cache / "file").exists()
