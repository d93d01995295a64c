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


def end_like_an_interrupt() -> None:
    """SIGTERM stops the command as Ctrl-C does, so that what it started ends with it."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)
