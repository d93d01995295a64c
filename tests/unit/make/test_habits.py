"""What a newcomer relies on: every target is explained, tools are pinned, CI runs what people run, one version."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hcp
from hcp import build_info

REPOSITORY = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def targets() -> list[str]:
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert phony
    return phony[1].replace("\\\n", " ").split()


def test_help_explains_every_target() -> None:
    told = subprocess.run(["make", "-s", "-C", REPOSITORY, "help"], capture_output=True, text=True, check=True).stdout
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ")]
    assert sorted(listed) == sorted(targets())


@pytest.mark.parametrize("extra", ["dev", "docs"])
def test_tools_are_pinned_and_explained(extra: str) -> None:
    explained = (REPOSITORY / "docs/dependencies.md").read_text()
    for requirement in PROJECT["project"]["optional-dependencies"][extra]:
        name, pinned, _ = requirement.partition("==")
        assert pinned, requirement
        assert name in explained, name


def test_the_version_is_written_once() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hcp.__version__"}
    assert build_info.identity().startswith(f"{hcp.__version__}+")


def test_ci_runs_what_people_run() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/test.yml").read_text())
    commands = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    for command in ("make test", "make test-fresh COLD=1", "make docs", "make wheel"):
        assert command in commands
    assert (REPOSITORY / ".ci/run").read_text().splitlines()[-1] == "make test"


def test_commit_hooks_run_the_tools_of_the_makefile() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    used = {hook["entry"].split()[0] for hook in hooks}
    assert {".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/lint-imports"} <= used
