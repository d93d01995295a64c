"""The programs that one build runs: how much of the processor they took, and ending them all."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from hcp.errors import HcpError
from hcp.linux import processes


class Children:
    """Runs programs one after another for a build, from that build's thread; `stop` may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._cpu = 0.0
        self._began = time.thread_time()

    @property
    def cpu(self) -> float:
        """Seconds of one core: of the programs, and of the thread that asks, which is the build's own."""
        return self._cpu + time.thread_time() - self._began

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
    ) -> int:
        """Waits for a program and gives its exit code, negative for a signal."""
        with self._lock:
            if self._stopped:
                raise HcpError("The build was stopped")
            child = subprocess.Popen(words, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
            self._running = child
        try:
            # Not Popen.wait: only this tells what the program and everything it started used.
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            with self._lock:
                self._running = None
        child.returncode = os.waitstatus_to_exitcode(status)
        self._cpu += usage.ru_utime + usage.ru_stime
        return child.returncode

    def stop(self) -> None:
        """Ends the program that runs and all that it started; the build then fails.

        Told to end, Go leaves its compilers behind: they would go on for minutes.
        """
        with self._lock:
            self._stopped = True
            if self._running is not None:
                for pid in (self._running.pid, *processes.below(self._running.pid)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGTERM)
