"""Tests that pages name, as `file.py::test_name`, are there: a page that says what shows something is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
NAMED = re.compile(r"`((?:[\w/]+\.py)?)::(test_\w+)`")


def test_pages_name_tests_that_there_are() -> None:
    named = [(page, *found) for page in PAGES for found in named_in(page.read_text())]
    assert len(named) > 10
    assert [f"{page.name}: {file}::{test}" for page, file, test in named if not there(file, test)] == []


def named_in(text: str) -> list[tuple[str, str]]:
    """Files and tests; one without a file is of the file before it."""
    found: list[tuple[str, str]] = []
    for file, test in NAMED.findall(text):
        found.append((file or found[-1][0], test))
    return found


def there(file: str, test: str) -> bool:
    paths = [ROOT / file] if "/" in file else list((ROOT / "tests").rglob(file))
    return any(path.is_file() and re.search(rf"^(async )?def {test}\(", path.read_text(), re.M) for path in paths)


@pytest.mark.parametrize("file", ["tests/unit/docs/test_named_tests.py", "test_named_tests.py"])
def test_a_test_that_is_gone_is_found(file: str) -> None:
    assert there(file, "test_a_test_that_is_gone_is_found")
    assert not there(file, "test_that_never_was")
    assert named_in("`a.py::test_one`, `::test_two`") == [("a.py", "test_one"), ("a.py", "test_two")]
