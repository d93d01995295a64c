"""What a build function is given: its dependencies, a place to write, and a way to run tools."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload import debian
from hcp.payload.children import Children
from hcp.payload.component import Component

_LOG_TAIL = 30


@dataclass
class BuildContext:
    """One build of one component. Everything in `out` becomes the artifact; the rest is thrown away."""

    component: Component
    key: str
    deps: Mapping[str, Path]
    out: Path
    """Empty staging directory; renamed into the cache when the build function returns."""
    scratch: Path
    """Empty directory for intermediate files, removed afterwards."""
    cache: Path
    """Root of hcp's cache, for things shared by components (Go modules, compiled packages, the Go tool itself)."""
    log: Path
    say: Callable[[str], None] = field(default=lambda text: None)
    """Shows a word on what is going on now; plain text, one line."""
    children: Children = field(default_factory=Children)

    def dep(self, name: str) -> Path:
        """The finished artifact directory of a dependency."""
        return self.deps[name]

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input_bytes: bytes | None = None,
        capture: bool = False,
    ) -> bytes:
        """Runs a tool. Its output goes to the component's log; with `capture` stdout is returned instead."""
        words = [str(word) for word in argv]
        if shutil.which(words[0]) is None:
            raise HcpError(
                f"Building {self.component.name} needs the program {words[0]}",
                hint=f"Install {words[0]} and run the command again.",
            )
        with self.log.open("ab") as log:
            log.write(f"\n$ {' '.join(words)}\n".encode())
            log.flush()
            with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
                given.write(input_bytes or b"")
                given.seek(0)
                code = self.children.run(
                    [*_dies_with_us(), *words],
                    cwd=cwd or self.scratch,
                    env={**os.environ, **(env or {})},
                    stdin=given,
                    stdout=said if capture else log,
                    stderr=log,
                )
                said.seek(0)
                captured = said.read()
        if code != 0:
            tail = self.log_tail()
            raise HcpError(
                f"Building {self.component.name} failed: {Path(words[0]).name} {_ending(code)}",
                cause="\n" + tail,
                hint=f"{_advice(tail)}The whole log is in {self.log}",
            )
        return captured

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL:])

    def apt(self, *packages: str) -> None:
        """Makes sure that Debian packages are installed on this machine (installing needs root)."""
        missing = debian.missing(packages)
        if missing:
            self.say("installing " + " ".join(missing))
            debian.install(missing, self)

    def unpack_debs(self, packages: Sequence[str], into: Path) -> dict[str, debian.Package]:
        """Downloads Debian packages and unpacks them into a directory, without installing them; needs no root.

        Returns the version of each package and which library packages it needs.
        """
        return debian.unpack(packages, into, self)


def _ending(code: int) -> str:
    return f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"


def _dies_with_us() -> list[str]:
    """Words before a command that end it when we are killed: an orphan would write into the next run's folder."""
    return ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []


_ADVICE = {
    ("no space left on device", "disk quota exceeded"): "The disk is full: `hcp payload clean` frees leftovers. ",
    ("dial tcp", "no such host", "temporary failure resolving", "could not resolve", "connection refused"): (
        "A server could not be reached: check the network (Go modules: GOPROXY), give ready files with --from DIR, "
        "or build on another machine and use `hcp payload import`. "
    ),
}


def _advice(log: str) -> str:
    """What to do about the troubles that have nothing to do with the component itself."""
    text = log.lower()
    return next((advice for signs, advice in _ADVICE.items() if any(sign in text for sign in signs)), "")
