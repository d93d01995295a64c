"""What `down --purge` leaves: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.errors import HcpError
from hcp.local.lifecycle.down import down
from hcp.local.state.layout import Layout, state_root


def test_the_last_cluster_takes_the_folders_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("one", "two"):
        Layout.of(name).make()
        (Layout.of(name).data / "x").write_text("y")
    down("one", purge=True, say=print)
    assert [path.name for path in state_root().glob("*/")] == ["two"]
    down("two", purge=True, say=print)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(HcpError, match="no embedded cluster named 'two'"):
        down("two", purge=True, say=print)
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_put_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    Layout.of("one").make()
    (tmp_path / "hcp" / "note").write_text("mine")
    down("one", purge=True, say=print)
    assert [path.name for path in (tmp_path / "hcp").iterdir()] == ["note"]
