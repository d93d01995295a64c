"""Wrong passwords are looked at later and later: tests in Go of what slows them down, in a time that nobody waits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.payload import BuildContext
from hcp.payload.gotool import Go
from hcp.payload.registry import default_registry
from hcp.payload.store import Store
from hcp.payload.versions import recipe_dir

TESTS = Path(__file__).with_name("pace_test.go")


def test_guessing_gets_slower_for_one_name_and_for_nobody_else(tmp_path: Path) -> None:
    for file in (recipe_dir("dex") / "htpasswd" / "pace.go", TESTS):
        shutil.copyfile(file, tmp_path / file.name)
    log, scratch = tmp_path / "log", tmp_path / "scratch"
    scratch.mkdir()
    ctx = BuildContext(default_registry().get("dex"), "", {}, tmp_path, scratch, Store().root, log)
    try:
        Go(ctx).run("test", "-vet=off", "-v", "pace.go", TESTS.name, cwd=tmp_path)
    except HcpError as error:
        pytest.fail(f"{error}\n{log.read_text()}")
    assert log.read_text().count("--- PASS") == TESTS.read_text().count("\nfunc Test")
