"""Whether names below a base domain of the owner's lead to the default ingress of their cluster.

Asked from outside, as anybody would: a name below the domain has to be known, who answers there has to show the
certificate that only this cluster's router has, and the router has to lead to the canary's pods. No watch tells that a
DNS record was made, so this is asked at a slow pace, beside the passes; a cluster without a base domain of its own, or
without a node, is never asked about.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hcp.hostedcluster.asking import Asking
from hcp.oci.address_policy import AddressPolicy, ForbiddenAddress

PORT = 443
STEADY, AGAIN = 300.0, 10.0
SECONDS = 10.0
MOST_ADDRESSES = 4
# Of an answer so much is read.
LONGEST = 4096


@dataclass(frozen=True)
class Question:
    """A host, and who has signed for the router that should answer there."""

    host: str
    ca: bytes


class Canary(Asking[Question, str]):
    """The answer is why not, or empty."""

    what = "canary"
    again = AGAIN

    def __init__(self, policy: AddressPolicy, ended: Callable[[str], None]) -> None:
        super().__init__(ended)
        self._policy = policy

    async def answer(self, cluster: dict[str, Any], question: Question) -> tuple[str, float]:
        problem = await reaches(question, self._policy, PORT)
        return problem, AGAIN if problem else STEADY


async def reaches(question: Question, policy: AddressPolicy, port: int = PORT) -> str:
    """Why the host does not lead to the router; empty when it does, by any of its addresses."""
    host = question.host
    try:
        async with asyncio.timeout(SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return f"{host} has no address"
    problem = ""
    for address in list(dict.fromkeys(str(one[4][0]) for one in found))[:MOST_ADDRESSES]:
        problem = await _answers(question, address, policy, port)
        if not problem:
            return ""
    return problem


async def _answers(question: Question, address: str, policy: AddressPolicy, port: int) -> str:
    host = question.host
    try:
        policy.check(address)
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(
                address, port, ssl=_context(question.ca), server_hostname=host
            )
            try:
                return await _pods(reader, writer, host)
            finally:
                writer.close()
    except ForbiddenAddress as exc:
        return f"{host} is not asked: {exc}"
    except ssl.SSLCertVerificationError:
        return f"somebody else answers for {host} at {address}"
    except TimeoutError:
        return f"{host} does not answer at {address} within {SECONDS:.0f} s"
    except OSError as exc:
        return f"{host} does not answer at {address}: {exc.strerror or exc}"


async def _pods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> str:
    """Whether the router leads to pods. What is said there is repeated to nobody: only its number is read."""
    writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()
    words = (await reader.read(LONGEST)).split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        return f"the router answers for {host}, but not as one"
    if words[1] == b"200":
        return ""
    number = int(words[1]) if words[1].isdigit() and len(words[1]) == 3 else 0
    return f"the router answers for {host} with {number}: it does not reach the pods of the canary"


def _context(ca: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca.decode())
    return context
