"""The tests where nothing is as usual; `make test-odd`.

A copy of the repository lies in a folder with spaces and an umlaut, TMPDIR is elsewhere, the umask is 077, the locale
knows ASCII only, a proxy is named that does not answer, Ctrl-C is not heard (as in a background job), another embedded
cluster with its own state folder runs, and the machine is busy. LOAD says how many processes keep it so (20),
TESTS which tests run instead of the chosen ones.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
CHOSEN = (
    "tests/unit",
    "tests/integration/test_engine_client.py",
    "tests/integration/test_engine_registry.py",
    "tests/integration/test_cli_wait.py",
    "tests/integration/test_cli_operate.py",
    "tests/integration/test_nodepool_reconcile.py",
)
DEAD_PROXY = "http://127.0.0.1:9"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")


def environment(place: Path) -> dict[str, str]:
    """What the tests see. PYTHONUTF8 is the Makefile's own: pytest itself reads files in the locale's encoding."""
    made = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    made |= {name: DEAD_PROXY for base in ("http_proxy", "https_proxy") for name in (base, base.upper())}
    made |= {"LC_ALL": "C", "LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "1"}
    # Paths of the cache are the usual ones: what was built is not built again.
    folder = place / "tmp"
    folder.mkdir(parents=True)
    return made | {"TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join((str(place / "src"), str(place)))}


@contextlib.contextmanager
def load(number: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@contextlib.contextmanager
def neighbour(place: Path, env: dict[str, str]) -> Iterator[None]:
    """Somebody else's embedded cluster: it has another state folder, so nothing here knows its name or number."""
    theirs = {**env, "XDG_STATE_HOME": str(place / "state of somebody else")}
    command = [sys.executable, "-m", "hcp", "local"]
    subprocess.run([*command, "up", "--profile", "api", "--name", "default"], env=theirs, check=True)
    try:
        yield
    finally:
        subprocess.run([*command, "down", "--purge", "--name", "default"], env=theirs, check=True)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    chosen = shlex.split(os.environ.get("TESTS", "")) or list(CHOSEN)
    with tempfile.TemporaryDirectory(prefix="an odd pl\u00e4ce ") as folder:
        place = Path(folder) / "hcp"
        shutil.copytree(REPOSITORY, place, ignore=LEFT_OUT)
        env = environment(place)
        with neighbour(place, env), load(int(os.environ.get("LOAD") or 20)):
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
            return subprocess.run(command, env=env, cwd=place, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
