"""Version, source and commit of the program, wherever it runs from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hcp import __version__, build_info


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "checkout" / "src" / "hcp"
    (root / "payload" / "recipes").mkdir(parents=True)
    (root / "__init__.py").write_text("x = 1\n")
    (root / "payload" / "recipes" / "go.mod").write_text("module x\n")
    return root


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_identity_follows_the_source_and_nothing_else(package: Path) -> None:
    before = build_info.identity(package)
    assert before.startswith(f"{__version__}+")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"x")
    (package / "payload" / "recipes" / "go.sum").write_text("x\n")
    (package / build_info.COMMIT_FILE).write_text("abc\n")
    assert build_info.identity(package) == before
    (package / "__init__.py").write_text("x = 2\n")
    assert build_info.identity(package) != before


def test_a_file_that_moves_is_another_source(package: Path) -> None:
    before = build_info.identity(package)
    (package / "__init__.py").rename(package / "other.py")
    assert build_info.identity(package) != before


def test_the_commit_of_a_checkout_and_of_its_working_trees(package: Path, tmp_path: Path) -> None:
    checkout = package.parent.parent
    assert build_info.commit(package) == build_info.UNKNOWN
    git(checkout, "init", "-q", "-b", "main")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "one")
    assert build_info.commit(package) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = tmp_path / "side"
    (side / "more").write_text("x")
    git(side, "add", ".")
    git(side, "commit", "-qm", "two")
    assert build_info.commit(side / "src" / "hcp") == git(side, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    assert build_info.commit(package) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "--detach")
    assert build_info.commit(package) == git(checkout, "rev-parse", "HEAD")


def test_a_wheel_carries_its_commit(package: Path) -> None:
    (package / build_info.COMMIT_FILE).write_text("abc\n")
    assert build_info.commit(package) == "abc"
