"""Commands of hcp that the tour runs as a person would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def hcp(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "hcp", *words]


def end(child: subprocess.Popen[bytes]) -> None:
    """Nothing of the tour goes on when the tour was stopped. Ctrl-C reached it too: it may be at its last words."""
    try:
        child.wait(2 if isinstance(sys.exc_info()[1], KeyboardInterrupt) else 0)
    except subprocess.TimeoutExpired:
        child.terminate()
        child.wait()
