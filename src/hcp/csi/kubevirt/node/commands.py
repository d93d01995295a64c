"""Programs that make and mount file systems, and what they say when they fail.

On a node they are the node's own, run in its mount namespace: they fit its kernel, and our image stays small.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hcp.csi.errors import CsiError
from hcp.errors import HcpError

_ON_THE_NODE = ("nsenter", "--mount=/proc/1/ns/mnt", "--")
# What nsenter ends with when it cannot start the program.
_NOT_THERE = 127
_before: list[str] = []


def use_those_of_the_node() -> None:
    """From now on; the process has to see the node's processes."""
    _before[:] = _ON_THE_NODE


class CommandFailed(CsiError):
    """A program ended with an error."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str


async def run(*words: str) -> Ended:
    """However it ends; a program that does not exist is told as such."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_before,
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except FileNotFoundError as error:
        raise HcpError(f"There is no program {words[0]}") from error
    out, err = await process.communicate()
    if _before and process.returncode == _NOT_THERE:
        raise HcpError(f"The node has no program {words[0]}")
    return Ended(process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


async def must(*words: str) -> str:
    """Its output; raises unless it ended well."""
    ended = await run(*words)
    if ended.code:
        told = (ended.err or ended.out).strip() or f"exit code {ended.code}"
        raise CommandFailed(f"{words[0]} failed", cause=told)
    return ended.out
