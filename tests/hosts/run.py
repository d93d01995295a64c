"""`hcp local up` on machines as users have them: `make test-hosts`, see docs/embedded-hosts.md.

HOSTS="debian-12 ubuntu-24.04" chooses distributions, VARIANTS="docker firewalld" what is changed on them (none: `-`),
MEMORY how many MiB a machine has. KEEP=1 leaves a machine running when a step failed, and says how to log in.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.fresh.steps import Result, table
from tests.hosts import distributions, footprint, payload_disk, root, story, variants
from tests.hosts.distributions import Distribution
from tests.hosts.machine import Failed, Machine, started
from tests.hosts.story import Step, need

from hcp.errors import HcpError

FOLDER = Path("build/hosts").resolve()
_MEMORY = "6144"
_DEFAULT = ("debian-12", "ubuntu-24.04")
_FIRST = (
    Step("boot", story.boot),
    Step("facts", story.facts),
    Step("install", story.install),
    Step("tour", story.tour),
    Step("hosted API", story.hosted_api),
    Step("cgroup v2", story.unified),
    Step("session", story.logged_out),
    Step("outside", story.outside),
    Step("status", story.status),
)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell's background jobs are started with SIGINT off
        signal.signal(number, _interrupt)
    try:
        hosts = _chosen("HOSTS", _DEFAULT, distributions.ALL)
        more = _chosen("VARIANTS", tuple(variants.ALL), variants.ALL)
        if os.geteuid() != 0:
            raise HcpError("A machine's disk is made by root", hint="sudo make test-hosts")
        return max([on(distributions.ALL[name], [variants.ALL[one] for one in more]) for name in hosts])
    except KeyboardInterrupt:
        print("cancelled; the machine is gone", file=sys.stderr)
        return 130
    except HcpError as error:
        print(f"Error: {error}\nHint: {error.hint}" if error.hint else f"Error: {error}", file=sys.stderr)
        return error.exit_code


def on(found: Distribution, more: list[variants.Variant]) -> int:
    """All of it on one machine. Gives the exit code."""
    with _folder(found.name) as folder:
        _say(f"{found.name}: its disk")
        host = root.made(found, FOLDER)
        key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        _say(f"{found.name}: a disk with the payload")
        payload = payload_disk.make(found.python, key.with_suffix(".pub"), folder)
        log = FOLDER / f"{found.name}.log"
        log.unlink(missing_ok=True)
        memory = int(os.environ.get("MEMORY") or _MEMORY)
        _say(f"{found.name}: it boots (log: {log})")
        with started(folder, host, payload, key, log, memory) as machine:
            results = _all(machine, found.name, more)
            if results[-1].code and os.environ.get("KEEP", "0") not in ("", "0"):
                print(f"It goes on running: ssh -i {key} -p {machine.port} root@127.0.0.1; end it with Ctrl-C.")
                with contextlib.suppress(KeyboardInterrupt):
                    machine.process.wait()
    print(f"\n{found.name}\n{table(results)}", flush=True)
    return max(result.code for result in results)


def _all(machine: Machine, name: str, more: list[variants.Variant]) -> list[Result]:
    """Stops at the first step that fails: what comes after it stands on it."""
    results: list[Result] = []
    for step in _steps(more):
        began = time.monotonic()
        try:
            said, code = step.run(machine), 0
        except (Failed, AssertionError, HcpError, LookupError, ValueError, subprocess.TimeoutExpired) as error:
            said, code = str(error) or repr(error), 1
        results.append(
            Result(step.name, said.splitlines()[0] if said else "", round(time.monotonic() - began, 1), code)
        )
        _say(f"{name}: {step.name}: {'FAILED: ' if code else ''}{said}")
        if code:
            break
    return results


def _steps(more: Iterable[variants.Variant]) -> Iterator[Step]:
    before: dict[str, str] = {}

    def look(machine: Machine) -> str:
        before.update(footprint.take(machine))
        return ""

    def nothing_left(machine: Machine) -> str:
        found = footprint.differences(before, footprint.take(machine))
        need(not found, "the machine is as it was:\n" + "\n".join(found))
        return "the machine is as it was"

    yield from _FIRST[:3]
    yield Step("before", look)
    yield from _FIRST[3:]
    for variant in more:
        yield from _variant(variant)
    yield Step("AppArmor denied", story.denied)
    yield Step("purge", story.purge)
    yield Step("left", nothing_left)


def _variant(variant: variants.Variant) -> Iterator[Step]:
    def change(machine: Machine) -> str:
        story.down(machine)
        _lines(machine, variant.change)
        story.up(machine)
        variant.meanwhile(machine)
        return ""

    def undo(machine: Machine) -> str:
        story.down(machine)
        variant.afterwards(machine)
        _lines(machine, variant.undo)
        story.up(machine)
        return story.status(machine)

    checks: tuple[tuple[str, Callable[[Machine], str]], ...] = (
        ("up", change),
        ("outside", story.outside),
        ("hosted API", story.hosted_api),
        ("without it again", undo),
    )
    for name, run in checks:
        yield Step(f"{variant.name}: {name}", run)


def _lines(machine: Machine, lines: Iterable[str]) -> None:
    for line in lines:
        machine.run(line)


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    folder = FOLDER / f"run-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _chosen(variable: str, default: Iterable[str], known: Iterable[str]) -> list[str]:
    names = [word for word in os.environ.get(variable, "").split() if word != "-"]
    if not os.environ.get(variable):
        names = list(default)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise HcpError(f"{variable}: there is no {', '.join(unknown)}", hint=f"{variable} takes: {' '.join(known)}")
    return names


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
