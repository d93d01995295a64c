"""Starting processes and collecting every one that ends.

As process 1 of a pid namespace the supervisor also inherits orphans (containerd's shims, for one); asyncio's own
child watchers would leave those as zombies.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_SLACK_NANOSECONDS = 10_000_000
_libc = ctypes.CDLL(None, use_errno=True)


def prepare_child() -> None:
    """What a child sets for itself before it becomes the program, in force for all that it starts.

    Without a pid namespace, dying with the parent is what keeps a killed supervisor from leaving processes behind.
    Timers that may be 10 ms late are served together: idle control planes do little else than wake up for timers, and
    a third of what they cost goes away (docs/benchmarks.md). QEMU sets its own precision.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(_SLACK_NANOSECONDS), 0, 0, 0)


class Reaper:
    """Owns SIGCHLD. Nothing else in this process may wait for children."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[int]] = {}

    def install(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._collect)

    def spawn(self, argv: list[str], env: dict[str, str], output: int) -> int:
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=prepare_child,  # noqa: PLW1509  the supervisor has one thread
        )
        self._waiting[process.pid] = asyncio.get_running_loop().create_future()
        process.returncode = 0  # we collect it, not Popen
        return process.pid

    async def wait(self, pid: int) -> int:
        """The exit code, negative for a signal."""
        future = self._waiting.get(pid)
        return await asyncio.shield(future) if future else 0

    def _collect(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            future = self._waiting.pop(pid, None)
            if future and not future.done():
                future.set_result(os.waitstatus_to_exitcode(status))
