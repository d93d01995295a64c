"""Talking to the person: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys

from hcp.errors import HcpError


def note(text: str) -> None:
    """Progress or an explanation; never part of a command's result."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    note(f"Warning: {text}")


def report(error: HcpError) -> None:
    """An error, once: what, why, and what to do."""
    note(f"Error: {error}")
    if error.hint:
        note(f"Hint: {error.hint}")
