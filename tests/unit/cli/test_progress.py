"""Progress: one living line on a terminal, a line per change elsewhere, a useful error when the time is up."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from hcp.cli.progress import wait_until
from hcp.errors import HcpError
from hcp.kube.errors import Forbidden, unreachable

STEPS = """
import asyncio
from hcp.cli.progress import wait_until
texts = ["etcd waits", "etcd waits", "nodes 0 of 2", "nodes 2 of 2"]
async def look():
    text = texts.pop(0)
    return not texts, text
asyncio.run(wait_until(look, late="late", seconds=30, hint="", period=0.01))
"""


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
    async def look() -> tuple[bool, str]:
        return False, "etcd waits (no disk)"

    with pytest.raises(HcpError) as caught:
        await wait_until(look, late="cluster a/b is not ready", seconds=0.05, hint="look there", period=0.01)
    assert str(caught.value) == "cluster a/b is not ready after 0.05 s: etcd waits (no disk)"
    assert caught.value.exit_code == 3


async def test_a_server_that_is_away_is_waited_out() -> None:
    answers = [unreachable("https://x", "refused"), None]

    async def look() -> tuple[bool, str]:
        error = answers.pop(0)
        if error:
            raise error
        return True, "there"

    await wait_until(look, late="late", seconds=5, hint="", period=0.01)
    assert answers == []


async def test_other_errors_end_the_wait() -> None:
    async def look() -> tuple[bool, str]:
        raise Forbidden("no")

    with pytest.raises(Forbidden):
        await wait_until(look, late="late", seconds=5, hint="", period=0.01)
