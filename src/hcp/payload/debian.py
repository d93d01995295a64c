"""Debian packages as a source: installing what a build needs, and unpacking what we ship."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hcp.errors import HcpError

if TYPE_CHECKING:
    from hcp.payload.context import BuildContext

_C_LIBRARY = ("libc6", "libc-bin")
_APT_ENV = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


def missing(packages: Sequence[str]) -> list[str]:
    """Which of the packages are not installed."""
    _need_apt(packages)
    absent = []
    for package in packages:
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or done.stdout != "installed":
            absent.append(package)
    return absent


def install(packages: Sequence[str], ctx: BuildContext) -> None:
    """Installs packages; a person who is not root is told what to run instead."""
    _need_apt(packages)
    if os.geteuid() != 0:
        raise HcpError(
            f"Building {ctx.component.name} needs Debian packages that are not installed: {' '.join(packages)}",
            hint=f"Run: sudo apt-get install {' '.join(packages)}",
        )
    _with_fresh_lists(
        ctx, ["apt-get", "-o", "DPkg::Lock::Timeout=600", "install", "-y", "--no-install-recommends", *packages]
    )


@dataclass(frozen=True)
class Package:
    """A package that was unpacked. `libraries` are the packages it says it needs libraries of."""

    version: str
    libraries: tuple[str, ...]


def unpack(packages: Sequence[str], into: Path, ctx: BuildContext) -> dict[str, Package]:
    """Fetches packages of this machine's Debian and unpacks them below `into`."""
    _need_apt(packages)
    folder = ctx.scratch / "debs"
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        folder.chmod(0o777)  # apt fetches as its own user
    _with_fresh_lists(ctx, ["apt-get", "download", "-o", "APT::Sandbox::User=root", *packages], cwd=folder)
    unpacked = {}
    into.mkdir(parents=True, exist_ok=True)
    for package in sorted(folder.glob("*.deb")):
        ctx.run(["dpkg-deb", "-x", package, into])
        form = "--showformat=${Package}\n${Version}\n${Pre-Depends},${Depends}"
        name, version, depends = ctx.run(["dpkg-deb", "-W", form, package], capture=True).decode().split("\n", 2)
        unpacked[name] = Package(version, library_packages(depends))
        package.unlink()
    return unpacked


def library_packages(depends: str) -> tuple[str, ...]:
    """The packages with libraries among a package's dependencies: by Debian's rules their names begin with lib.

    Of alternatives the first, which is what Debian itself builds with. The C library is every machine's own.
    """
    names = [clause.split("|")[0].split("(")[0].strip().split(":")[0] for clause in depends.split(",")]
    return tuple(name for name in names if name.startswith(("lib", "zlib")) and name not in _C_LIBRARY)


def _with_fresh_lists(ctx: BuildContext, argv: list[str], cwd: Path | None = None) -> None:
    """Package lists may be absent or name versions that the mirror no longer has: then refresh them once.

    One at a time: apt does not wait for another that is refreshing its lists, it fails.
    """
    lock = ctx.cache / "locks" / "apt.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            ctx.run(argv, env=_APT_ENV, cwd=cwd)
        except HcpError:
            if os.geteuid() != 0:
                raise
            ctx.run(["apt-get", "update"], env=_APT_ENV)
            ctx.run(argv, env=_APT_ENV, cwd=cwd)


def _need_apt(packages: Sequence[str]) -> None:
    if shutil.which("apt-get") is None:
        raise HcpError(
            f"These come from Debian packages and this machine has no apt-get: {' '.join(packages)}",
            hint="Use Debian or Ubuntu, give ready files with --from DIR, or import them with `hcp payload import`.",
        )
