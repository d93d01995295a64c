"""docs/guides.md is true: every test it names exists, every limit it names is a row, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = {
    **{name: f"tests/guides/test_guide_{name}.py" for name in ("commands", "create", "manage", "ingress")},
    "external_infra": "tests/guides/test_guide_external_infra.py",
    "yaml": "tests/guides/test_guide_yaml.py",
    "isolation": "tests/guides/test_guide_isolation.py",
    "mirror": "tests/guides/test_guide_mirror.py",
    "catalogs": "tests/guides/test_guide_catalogs.py",
}


def rows() -> list[tuple[str, str]]:
    lines = (ROOT / "docs/guides.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [(step, shown) for step, shown in cells if step != "step"]


def defined_in(name: str) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", (ROOT / FILES[name]).read_text(), re.MULTILINE))


def named() -> set[tuple[str, str]]:
    return {pair for _, shown in rows() for pair in re.findall(r"`(\w+)::(test_\w+)`", shown)}


def test_every_step_is_shown_or_is_a_limit() -> None:
    for step, shown in rows():
        assert "::test_" in shown or "limits: " in shown, step


def test_every_test_named_exists() -> None:
    missing = [f"{name}::{test}" for name, test in named() if test not in defined_in(name)]
    assert not missing


def test_every_test_is_named() -> None:
    unnamed = [f"{name}::{test}" for name in FILES for test in defined_in(name) if (name, test) not in named()]
    assert not unnamed


def test_every_limit_named_is_a_row() -> None:
    limits = [line[2:] for line in (ROOT / "docs/limits.md").read_text().splitlines() if line.startswith("| ")]
    for step, shown in rows():
        for start in re.findall(r"limits: ([^;]+)", shown):
            assert any(limit.startswith(start.strip()) for limit in limits), (step, start)
