"""Commands of hcp that the tour runs as a person would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from hcp.linux import processes

_LAST_WORDS = 30.0  # seconds; on a busy machine Python needs some of them to hear anything


def hcp(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "hcp", *words]


def end(child: subprocess.Popen[bytes]) -> None:
    """Nothing of the tour goes on when the tour was stopped, however often a person says so.

    Ctrl-C reached the child too: it may be at its last words.
    """
    try:
        child.wait(2 if isinstance(sys.exc_info()[1], KeyboardInterrupt) else 0)
    except subprocess.TimeoutExpired:
        _tell(child)
    except KeyboardInterrupt:
        _tell(child)
        raise


def _tell(child: subprocess.Popen[bytes]) -> None:
    """Ends it in good order; who does not hear that, or whose person has no patience, is killed with all below it."""
    child.terminate()
    try:
        child.wait(_LAST_WORDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt) as why:
        for pid in (child.pid, *processes.below(child.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.wait()
        if isinstance(why, KeyboardInterrupt):
            raise
