"""Which Debian package has a library: what this machine knows, else the name that Debian's rules give it."""

from __future__ import annotations

import re
import shutil
import subprocess

# Libraries whose packages are not named after them.
_ODD = {
    "libz.so.1": "zlib1g",
    "libcrypto.so.3": "libssl3",
    "libcrypto.so.1.1": "libssl1.1",
    "libmount.so.1": "libmount1",
}
_SONAME = re.compile(r"(?P<name>.+)\.so(?:\.(?P<version>.+))?")


def named_after(library: str) -> str | None:
    """The package's name by Debian's rule: libfoo.so.2 is in libfoo2, libfoo-1.so.2 in libfoo-1-2."""
    if library in _ODD:
        return _ODD[library]
    match = _SONAME.fullmatch(library)
    if match is None or not match["version"]:
        return None
    name = match["name"].lower().replace("_", "-")
    dash = "-" if name[-1].isdigit() else ""
    return f"{name}{dash}{match['version']}"


def package_hint(library: str) -> str:
    """Words for an error message; says so when nothing is known for certain."""
    owner = _installed_owner(library)
    if owner:
        return f"Debian package {owner}"
    guess = named_after(library)
    known = [name for name in ((guess, f"{guess}t64") if guess else ()) if _exists(name)]
    if known:
        return f"by its name Debian package {known[0]}"
    return "no Debian package of that name is known here; `apt-file search` finds it"


def _installed_owner(library: str) -> str | None:
    if shutil.which("dpkg-query") is None:
        return None
    done = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=False)
    line = next(iter(done.stdout.splitlines()), "")
    return line.split(":")[0] or None


def _exists(package: str) -> bool:
    if shutil.which("apt-cache") is None:
        return False
    done = subprocess.run(["apt-cache", "show", package], capture_output=True, text=True, check=False)
    return done.returncode == 0 and bool(done.stdout.strip())
