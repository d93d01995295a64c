"""Who runs programs out of a folder."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hcp.local.lifecycle import in_use
from hcp.local.state.layout import Layout
from hcp.local.supervisor import control, processes
from hcp.local.supervisor.processes import Process


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Layout.of("mine")
    made.make()
    return made


def test_a_running_cluster_uses_the_artifacts_its_processes_are_from(layout: Layout) -> None:
    layout.spec.write_text("{}")
    layout.processes.write_text(processes.dump([Process("etcd", ["/cache/artifacts/etcd/abc/bin/etcd"])]))
    assert in_use.user_of()(Path("/cache/artifacts/etcd/abc")) == ""
    control.remember(layout, os.getpid())
    user = in_use.user_of()
    assert "cluster 'mine'" in user(Path("/cache/artifacts/etcd/abc"))
    assert user(Path("/cache/artifacts/etcd/def")) == ""


async def test_a_supervisor_out_of_a_folder_is_found(
    layout: Layout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my venv" / "bin").mkdir(parents=True)
    python = tmp_path / "my venv" / "bin" / "python"
    python.symlink_to(sys.executable)
    assert in_use.main([str(tmp_path / "my venv")]) == 0
    layout.processes.write_text(processes.dump([]))
    process = await asyncio.create_subprocess_exec(
        str(python), "-m", "hcp.local.supervisor", str(layout.root), env={"PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        async with asyncio.timeout(300):
            while not in_use.clusters_from(tmp_path / "my venv"):
                assert process.returncode is None
                await asyncio.sleep(0.02)
        assert in_use.main([str(tmp_path / "my venv")]) == 1
        assert "local down --name mine --purge" in capsys.readouterr().err
        assert in_use.clusters_from(tmp_path / "other") == []
    finally:
        process.kill()
        await process.wait()
