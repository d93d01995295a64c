"""Somebody without rights on this machine, with a home and a cache of their own. Only root can become another user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

USER = "65534"
# It may read everything, as the interpreter may be in the home of the one who runs the tests, and nothing else.
RIGHT = "-all,+dac_read_search"
PARTS = ("etcd", "kubernetes-1.36")
HCP = (sys.executable, "-m", "hcp")


class Person:
    """What they run, and what they see."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self.home = home
        self.env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **env, "HOME": str(home), "TMPDIR": str(home)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        rights = ("--inh-caps", RIGHT, "--ambient-caps", RIGHT, "--bounding-set", RIGHT)
        who = ("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", *rights)
        return subprocess.run(
            [*who, *words], capture_output=True, text=True, env=self.env, cwd=self.home, timeout=900, check=False
        )

    def hcp(self, *words: str) -> str:
        done = self.run(*HCP, *words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def somebody(env: Mapping[str, str] | None = None) -> Iterator[Person]:
    """Their cache holds what a cluster of profile api needs; `env` is what they see besides PATH and home."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own folders are closed to others
        home = Path(folder)
        os.chown(home, int(USER), int(USER))
        parts = home / "parts.tar"
        subprocess.run([*HCP, "payload", "export", str(parts), *PARTS], check=True, capture_output=True)
        os.chown(parts, int(USER), int(USER))
        made = Person(home, env or {})
        made.hcp("payload", "import", str(parts))
        parts.unlink()
        yield made
