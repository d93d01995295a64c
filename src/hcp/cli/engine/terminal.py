"""Talking to the person: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys

from hcp.errors import HcpError


def note(text: str) -> None:
    """Progress or an explanation; never part of a command's result."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    note(f"Warning: {text}")


def alarm(text: str) -> None:
    """Something is wrong and a person has to act: red where that can be seen."""
    note(red(f"Wrong: {text}"))


def red(text: str) -> str:
    """Red on a terminal, unless colours are not wanted (https://no-color.org)."""
    import os

    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[31m{text}\x1b[0m" if colours else text


def report(error: HcpError) -> None:
    """An error, once: what, why, and what to do."""
    note(red(f"Error: {error}"))
    if error.hint:
        note(f"Hint: {error.hint}")


def end_like_an_interrupt() -> None:
    """SIGTERM stops the command as Ctrl-C does, so that what it started ends with it."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)
