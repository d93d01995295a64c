"""Printing objects instead of applying them."""

from __future__ import annotations

import os
import sys

from hcp.cli.engine.command import UsageError
from hcp.cli.engine.yaml_output import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Secrets in a file are for its owner only; anything else is as readable as the user's other files.
PRIVATE, ORDINARY = 0o600, 0o666


def documents(objects: list[dict[str, Any]]) -> str:
    """Each document is followed by a separator, the last one too."""
    return "".join(f"{dump(obj)}---\n" for obj in objects)


def write(text: str, path: str, *, sensitive: bool) -> None:
    """To stdout, or into a file that nobody else can read when it holds Secrets."""
    if not path:
        sys.stdout.write(text)
        return
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        handle = os.open(path, flags, PRIVATE if sensitive else ORDINARY)
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs half of what a render may
            if sensitive:
                os.fchmod(handle, PRIVATE)
            file.write(text)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f'cannot write the file "{path}" given with --render-into',
            cause=cause,
            hint="--render-into takes the path of a file in a directory you may write to",
        ) from None
