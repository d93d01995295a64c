"""Programs of the node's image, and what they say when they fail."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hcp.csi.errors import CsiError
from hcp.errors import HcpError


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
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
    except FileNotFoundError as error:
        raise HcpError(f"The node's image has no {words[0]}") from error
    out, err = await process.communicate()
    return Ended(process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


async def must(*words: str) -> str:
    """Its output; raises unless it ended well."""
    ended = await run(*words)
    if ended.code:
        told = (ended.err or ended.out).strip() or f"exit code {ended.code}"
        raise CommandFailed(f"{words[0]} failed", cause=told)
    return ended.out
