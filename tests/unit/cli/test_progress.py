"""Progress: one living line on a terminal, a line per change elsewhere, a useful error when the time is up."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest

from hcp.cli.shared.progress import Progress, wait_until
from hcp.cli.shared.watched import Watched
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.errors import Forbidden, unreachable
from hcp.kube.resources import NODEPOOLS

NOBODY = cast(Client, None)
STEPS = """
import asyncio
from hcp.cli.shared.progress import wait_until
texts = ["etcd waits", "etcd waits", "nodes 0 of 2", "nodes 2 of 2"]
class Steps:
    known, trouble = True, None
    async def follow(self, client, tell):
        while True:
            tell()
            await asyncio.sleep(0.01)
def judge():
    text = texts.pop(0)
    return not texts, text
asyncio.run(wait_until(None, [Steps()], judge, late="late", seconds=30, hint="", again=""))
"""


class Told(Watched):
    """Watched objects whose news come from the test; each step is an error, or nothing for a change."""

    def __init__(self, *steps: Any) -> None:
        super().__init__(NODEPOOLS, "a")
        self.steps = list(steps)

    async def follow(self, client: Client, tell: Callable[[], None]) -> None:
        for step in self.steps:
            if isinstance(step, Forbidden):
                raise step
            self.known, self.trouble = True, step
            tell()
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()


def test_plain_lines_when_not_a_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["etcd waits", "nodes 0 of 2", "nodes 2 of 2"]
    assert done.stdout == ""


def test_one_living_line_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", STEPS], stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait() == 0
    assert shown.count(b"\r\x1b[K") >= 4
    assert shown.count(b"\n") == 1
    assert shown.endswith(b"nodes 2 of 2\r\n")


async def test_the_error_says_what_was_last_seen() -> None:
    with pytest.raises(HcpError) as caught:
        await wait_until(
            NOBODY,
            [Told(None)],
            lambda: (False, "etcd waits (no disk)"),
            late="cluster a/b is not ready",
            seconds=0.5,
            hint="look there",
            again="",
        )
    assert str(caught.value) == "cluster a/b is not ready after 0.5 s: etcd waits (no disk)"
    assert caught.value.exit_code == 3


async def test_a_server_that_is_away_is_waited_out(capsys: pytest.CaptureFixture[str]) -> None:
    answers = ["etcd waits", "there"]

    def judge() -> tuple[bool, str]:
        text = answers.pop(0)
        return not answers, text

    watched = Told(None, unreachable("https://x", "refused"), None)
    await wait_until(NOBODY, [watched], judge, late="late", seconds=5, hint="", again="")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "etcd waits"
    assert lines[1].startswith("no answer from the management cluster (The API server https://x cannot be reached")
    assert lines[1].endswith("; last seen: etcd waits")
    assert lines[2] == "there"


async def test_a_timeout_while_the_server_is_away_still_says_what_was_stuck() -> None:
    watched = Told(None, unreachable("https://x", "refused"))
    with pytest.raises(HcpError, match=r"cannot be reached: refused\); last seen: etcd waits"):
        await wait_until(NOBODY, [watched], lambda: (False, "etcd waits"), late="l", seconds=1.5, hint="", again="")


async def test_a_refusal_ends_the_wait() -> None:
    with pytest.raises(Forbidden):
        await wait_until(
            NOBODY, [Told(Forbidden("no"))], lambda: (True, "x"), late="late", seconds=5, hint="", again=""
        )


async def test_ctrl_c_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = asyncio.ensure_future(
        wait_until(
            NOBODY,
            [Told(None)],
            lambda: (False, "etcd waits"),
            late="cluster a/b is not ready",
            seconds=5,
            hint="",
            again="hcp wait cluster b -n a goes on waiting",
        )
    )
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert capsys.readouterr().err.splitlines() == [
        "etcd waits",
        "Stopped waiting: cluster a/b is not ready yet",
        "Hint: hcp wait cluster b -n a goes on waiting",
    ]


def test_a_message_of_several_lines_is_shown_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    Progress().show("0 of 2 nodes (2 of 2 machines are not ready\nMachine a: Booting)")
    assert capsys.readouterr().err == "0 of 2 nodes (2 of 2 machines are not ready; Machine a: Booting)\n"
