"""Where Debian packages come from: the archive this machine's own apt is configured with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_FORMAT = "$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)"


def sources(suite: str) -> list[str]:
    """apt source lines for a suite; empty when the machine is no Debian: mmdebstrap then uses its own default."""
    if shutil.which("apt-get") is None:
        return []
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    return source_lines(suite, done.stdout.splitlines())


def source_lines(suite: str, targets: Iterable[str]) -> list[str]:
    """The same archives as the configured ones, for another suite of Debian."""
    main: str | None = None
    security: str | None = None
    for line in targets:
        words = line.split()
        if len(words) != 4 or words[0] != "Debian" or words[2] != "main":
            continue
        _, codename, _, uri = words
        if codename.endswith("-security"):
            security = security or uri
        elif "-" not in codename:
            main = main or uri
    if main is None:
        return []
    lines = [_line(main, suite)]
    if security is not None:
        lines.append(_line(security, f"{suite}-security"))
    return lines


def _line(uri: str, suite: str) -> str:
    return f"deb [signed-by={KEYRING}] {uri} {suite} main"
