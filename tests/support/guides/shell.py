"""A terminal as the guides assume it: `oc`, `kubectl`, `hcp` and `hypershift` on the path, and a home of its own.

The guides type `oc`; every `oc` line that we follow is one that `kubectl` has too, so here `oc` is kubectl.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VENV = Path(sys.executable).parent


class Shell:
    """Runs whole lines, with pipes and redirections, as they would be typed."""

    def __init__(self, folder: Path, kubectl: Path, kubeconfig: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        for name, target in {
            "oc": kubectl,
            "kubectl": kubectl,
            "hcp": VENV / "hcp",
            "hypershift": VENV / "hypershift",
        }.items():
            if not (programs / name).is_symlink():
                (programs / name).symlink_to(target)
        (folder / "pull-secret").write_text('{"auths": {}}')
        self.env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "PULL_SECRET": str(folder / "pull-secret"),
        }

    def run(self, line: str, *, stdin: str | None = None, seconds: float = 120, check: bool = True) -> str:
        """What the line prints; an error when it fails."""
        done = self._run(line, stdin, seconds)
        if check and done.returncode != 0:
            raise AssertionError(f"{line}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def refused(self, line: str, *, stdin: str | None = None) -> str:
        """What a line says that has to fail."""
        done = self._run(line, stdin, 120)
        assert done.returncode != 0, f"{line}\nwas accepted:\n{done.stdout}"
        return done.stderr

    def _run(self, line: str, stdin: str | None, seconds: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env=self.env,
            cwd=self.folder,
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
