"""The README's commands on a machine that has nothing: `make test-fresh`, see docs/fresh.md.

COLD=1 starts with an empty cache and builds everything; with KEEP=FOLDER that cache lies there and stays.
STEPS="install unit" runs only these.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.fresh import host_config, leftovers
from tests.fresh.room import Room, opened, wait
from tests.fresh.root import CLONE, make_root, uncommitted
from tests.fresh.steps import COLD_STEPS, STEPS, Step, read_results, run_all, table

from hcp.errors import HcpError
from hcp.local.host import machine
from hcp.payload.store import cache_root

LOGS = Path("build/fresh").resolve()
RESULTS = LOGS / "results.jsonl"


def main() -> int:
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # a shell's background jobs are started with SIGINT off
    try:
        cold = os.environ.get("COLD", "") not in ("", "0")
        return run(chosen(os.environ.get("STEPS", ""), cold=cold), cold=cold)
    except KeyboardInterrupt:
        print("cancelled; the room is gone", file=sys.stderr)
        return 130
    except HcpError as error:
        print(f"Error: {error}\nHint: {error.hint}" if error.hint else f"Error: {error}", file=sys.stderr)
        return error.exit_code


def run(steps: list[Step], *, cold: bool) -> int:
    if os.geteuid() != 0:
        raise HcpError(
            "The clean room needs root: it has namespaces and a root file system", hint="sudo make test-fresh"
        )
    kept = _kept() if cold else cache_root()  # looked at before the room's own root is made, which may lie there
    parent = Path(os.environ.get("TMPDIR") or "/var/tmp")
    leftovers.sweep(parent)
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    folder = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX, dir=parent))
    with (folder / leftovers.LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _in_folder(folder, steps, kept, cold=cold)
        finally:
            leftovers.remove_room(folder)


def _in_folder(folder: Path, steps: list[Step], kept: Path | None, *, cold: bool) -> int:
    folder.chmod(0o755)
    root = folder / "root"
    root.mkdir()
    repository = Path.cwd()
    if uncommitted(repository):
        print("The working tree has changes that are not committed: they are not in the clone that is tested.")
    commit = make_root(root, repository)
    cache = kept or root / "root/.cache/hcp"
    print(f"A room with nothing but Debian, Python, git and make; {'empty ' if cold else ''}cache {cache}")
    print(f"Testing {commit}; logs in {LOGS}")
    room = Room(
        root,
        cgroup=folder.name,
        read_only=host_config.passed_paths(os.environ),
        shared=_shared(kept, cold=cold) if kept else {},
    )
    machine.hold_settings(folder.name)  # clusters inside find them as they need them, and so leave them alone
    logs = os.open(LOGS, os.O_RDONLY)
    with RESULTS.open("w") as results:
        environment = _environment()
        with opened(room, lambda: run_all(steps, CLONE, environment, logs, results)) as guard:
            code = wait(guard)
    if cold:
        _keep(cache)
    return _verdict(code, steps)


def _keep(cache: Path) -> None:
    """What was said while everything was built, and when."""
    for name in ("logs", "timeline"):
        if (cache / name).is_dir():
            shutil.copytree(cache / name, LOGS / "payload" / name)


def _verdict(code: int, steps: list[Step]) -> int:
    done = read_results(RESULTS)
    print(f"\n{table(done)}")
    failed = [result.name for result in done if result.code != 0]
    if failed:
        print(f"FAILED: {', '.join(failed)}; logs in {LOGS}")
        return 1
    if code != 0 or len(done) < len(steps):
        print(f"FAILED: the room ended with {code} in step {steps[len(done)].name if len(done) < len(steps) else '-'}")
        return 1
    print("All passed.")
    return 0


def _kept() -> Path | None:
    """Where what a cold room builds stays: on a machine that is as new as the room it is built once, not twice."""
    word = os.environ.get("KEEP", "")
    if not word:
        return None
    folder = Path(word).resolve()
    if folder.is_dir() and any(folder.iterdir()):
        raise HcpError(
            f"KEEP={word} is not empty, so the room would not be cold", hint="Name a new folder", exit_code=2
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _shared(cache: Path, *, cold: bool) -> dict[Path, str]:
    """What was built and downloaded before, Go's modules and compiled packages included; of a cold room what stays."""
    if cold:
        return {cache: "/root/.cache/hcp"}
    cache.mkdir(parents=True, exist_ok=True)
    wheels = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"
    shown = {cache: "/root/.cache/hcp", wheels: "/root/.cache/pip"}
    return {path.resolve(): place for path, place in shown.items() if path.is_dir()}


def _environment() -> dict[str, str]:
    """A new user's, and the way to the registries."""
    return {
        "HOME": "/root",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **host_config.passed_environment(os.environ),
    }


def chosen(words: str, *, cold: bool = False) -> list[Step]:
    names = words.split()
    steps = COLD_STEPS if cold else STEPS
    known = [step.name for step in steps]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise HcpError(f"There is no step {', '.join(unknown)}", hint=f"STEPS takes: {' '.join(known)}", exit_code=2)
    return [step for step in steps if not names or step.name in names]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
