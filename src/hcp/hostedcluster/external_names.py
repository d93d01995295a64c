"""Whether host names that the owner chose for the control plane are known to the DNS.

Nobody tells when a record is made, so this is asked at a slow pace beside the passes, and only for clusters with such
names. Nothing is connected to: whether the API answers there is another condition.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from hcp.api.addresses import is_address
from hcp.api.paths import at
from hcp.hostedcluster.asking import Asking

STEADY, AGAIN = 300.0, 15.0
SECONDS = 10.0


def given(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names that somebody else has to make; those of our own Routes are the management cluster's."""
    found = []
    for entry in spec.get("services") or ():
        strategy = entry.get("servicePublishingStrategy") or {}
        block = "route" if strategy.get("type") == "Route" else "loadBalancer"
        found.append(str(at(strategy, f"{block}.hostname") or ""))
    found.append(str(spec.get("kubeAPIServerDNSName") or ""))
    return tuple(dict.fromkeys(name for name in found if name and not is_address(name)))


class ExternalNames(Asking[tuple[str, ...], tuple[str, ...]]):
    """The answer: which of them nobody knows."""

    what = "names"
    again = AGAIN

    async def answer(self, cluster: dict[str, Any], question: tuple[str, ...]) -> tuple[tuple[str, ...], float]:
        known = await asyncio.gather(*(_known(host) for host in question))
        unknown = tuple(host for host, there in zip(question, known, strict=True) if not there)
        return unknown, AGAIN if unknown else STEADY


async def _known(host: str) -> bool:
    try:
        async with asyncio.timeout(SECONDS):
            return bool(await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except (OSError, TimeoutError, UnicodeError):
        return False
