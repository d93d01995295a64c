"""Files are UTF-8, whatever the locale says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("how", [["-m", "hcp"], [str(Path(sys.executable).parent / "hcp")]])
def test_a_locale_of_another_encoding_changes_nothing(how: list[str], tmp_path: Path) -> None:
    probe = subprocess.run(
        [sys.executable, "-c", "import sys; print(sys.getfilesystemencoding())"],
        env={**os.environ, **OTHER},
        capture_output=True,
        text=True,
        check=True,
    )
    assert probe.stdout.strip() == "ascii", "this locale was to be another one"
    secret = tmp_path / "püll.json"
    secret.write_text('{"auths": {"ü.example": {}}}', encoding="utf-8")
    key = tmp_path / "key.pub"
    key.write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvb2JhcmJhemZvb2JhcmJhemZvb2JhcmJhemZvb2Jh jörg", encoding="utf-8"
    )
    words = ["create", "cluster", "kubevirt", "--name", "x", "--pull-secret", str(secret), "--ssh-key", str(key)]
    words += ["--release-image", "r.example/x:1.36.3", "--render", "--render-sensitive", "--annotations", "a/b=ü"]
    words += ["--infra-id", "x-12345"]
    usual, other = (
        subprocess.run([sys.executable, *how, *words], env={**os.environ, **env}, capture_output=True, check=False)
        for env in ({"LC_ALL": "C.UTF-8", "PYTHONUTF8": "0"}, OTHER)
    )
    assert other.returncode == 0, other.stderr
    assert b"a/b:" in usual.stdout
    assert _lines(other.stdout) == _lines(usual.stdout)


def _lines(text: bytes) -> list[bytes]:
    """Without keys that are drawn anew each time."""
    return [line for line in text.splitlines() if not line.strip().startswith(b"key:")]
