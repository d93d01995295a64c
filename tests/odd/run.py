"""The tests where nothing is as usual; `make test-odd`.

A copy of the repository lies in a folder with spaces and an umlaut, TMPDIR is elsewhere, the umask is 077, the locale
knows ASCII only, a proxy is named that does not answer, Ctrl-C is not heard (as in a background job), an embedded
cluster of another user runs, and the machine is busy. LOAD says how many processes keep it so (20), TESTS which tests
run instead of the chosen ones, JOBS how many files of them at a time (4). Then, without the load, again in Turkish (its
i has no dot when it is a capital letter elsewhere) and in German with an encoding of one byte per letter; LOCALES says
which languages.
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
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.person import somebody

from hcp import payload

REPOSITORY = Path(__file__).parents[2]
CHOSEN = (
    "tests/unit",
    "tests/integration/test_engine_client.py",
    "tests/integration/test_engine_registry.py",
    "tests/integration/test_cli_wait.py",
    "tests/integration/test_cli_operate.py",
    "tests/integration/test_nodepool_reconcile.py",
)
# What other languages could change: words, numbers and sorting in what we run and read.
SPOKEN = ("tests/unit", "tests/integration/test_cli_operate.py")
LOCALES = {"tr_TR.UTF-8": ("tr_TR", "UTF-8"), "de_DE.ISO-8859-1": ("de_DE", "ISO-8859-1")}
DEAD_PROXY = "http://127.0.0.1:9"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis")


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


def languages(place: Path) -> Path:
    """Locales that this machine need not have, made from Debian's sources in a folder of ours."""
    parts = Path(payload.ensure(["test-locales"])["test-locales"])
    folder = place / "tmp" / "locales"
    folder.mkdir()
    # A locale is for one C library: the machine's own tool is the right one where there is one.
    tool = shutil.which("localedef") or str(parts / "bin" / "localedef")
    for name, (language, charmap) in LOCALES.items():
        argv = [tool, "--no-archive", "-c", "-i", language, "-f", charmap, str(folder / name)]
        done = subprocess.run(argv, env={**os.environ, "I18NPATH": str(parts / "i18n")}, check=False)
        if not (folder / name).is_dir():
            raise SystemExit(f"{' '.join(argv)} ended with {done.returncode} and made no locale")
    return folder


def speaking(env: dict[str, str], folder: Path, name: str) -> dict[str, str]:
    """The environment in another language, shown to be understood by the C library."""
    made = {**env, "LOCPATH": str(folder), "LC_ALL": name, "LANG": name}
    program = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"
    told = subprocess.run([sys.executable, "-c", program], env=made, capture_output=True, text=True, check=False)
    if told.stdout.strip() != ",":
        raise SystemExit(f"locale {name} is not understood: {told.stdout}{told.stderr}")
    return made


@contextlib.contextmanager
def neighbour(place: Path, env: dict[str, str]) -> Iterator[None]:
    """Somebody else's embedded cluster, of the same name: nothing here knows of it.

    Root lets another user make it; an ordinary user cannot, and makes it in another state folder.
    """
    words = ("up", "--profile", "api", "--name", "default"), ("down", "--purge", "--name", "default")
    if os.geteuid() == 0:
        with somebody({"PYTHONPATH": env["PYTHONPATH"]}) as person:
            person.hcp("local", *words[0])
            try:
                yield
            finally:
                person.hcp("local", *words[1])
        return
    theirs = {**env, "XDG_STATE_HOME": str(place / "state of somebody else")}
    command = [sys.executable, "-m", "hcp", "local"]
    subprocess.run([*command, *words[0]], env=theirs, check=True)
    try:
        yield
    finally:
        subprocess.run([*command, *words[1]], env=theirs, check=True)


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the neighbour's cluster goes too
    given = shlex.split(os.environ.get("TESTS", ""))
    with tempfile.TemporaryDirectory(prefix="an odd pl\u00e4ce ") as folder:
        os.umask(0o077)
        place = Path(folder) / "hcp"
        shutil.copytree(REPOSITORY, place, ignore=LEFT_OUT)
        env = environment(place)
        spoken = shlex.split(os.environ.get("LOCALES", " ".join(LOCALES)))
        rounds = {name: speaking(env, where, name) for where in [languages(place)] for name in spoken}
        with neighbour(place, env):
            with load(int(os.environ.get("LOAD") or 20)):
                bad = [name for name in ["C"] if not _tests(place, env, given or CHOSEN)]
            bad += [name for name, other in rounds.items() if not _tests(place, other, given or SPOKEN)]
    if bad:
        print(f"Not green in locale {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


def _tests(place: Path, env: dict[str, str], chosen: Sequence[str]) -> bool:
    print(f"Locale {env['LC_ALL']}: {' '.join(chosen)}", flush=True)
    # Several files at a time: of a machine that twenty others keep busy, one process gets next to nothing.
    side_by_side = ["-n", os.environ.get("JOBS") or "4", "--dist", "loadfile"]
    # Sockets lie in the folders of tests, and the kernel takes 107 bytes of a path: with what pytest and its workers
    # put into TMPDIR (pytest-of-root/pytest-0/popen-gw0) they would be longer.
    where = f"--basetemp={place.parent / 't'}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", where, *side_by_side, *chosen]
    return subprocess.run(command, env=env, cwd=place, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
