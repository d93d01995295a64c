"""Through a proxy or directly: how a request of somebody's wish leaves.

The operator connects to no address inside for names that users choose. A proxy makes the connection itself, so what
can be asked beforehand is asked: an address that is written out, and those that the name has here, must be ones that we
would connect to. A name that only the proxy can resolve is the proxy's to judge; the administrator named the proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket

from yarl import URL

from hcp.http_proxy import Proxies
from hcp.oci.address_policy import AddressPolicy


async def proxy_for(url: URL, place: str, proxies: Proxies, policy: AddressPolicy) -> str | None:
    """The proxy for this URL, None for a direct connection; raises ForbiddenAddress. `place`: the registry's name."""
    proxy = proxies.for_url(str(url.origin())) if proxies and url.host else None
    if proxy is not None and policy.watches(place):
        for address in await _addresses(str(url.host), url.port or 443):
            policy.check(address)
    return proxy


async def _addresses(host: str, port: int) -> list[str]:
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [str(info[4][0]) for info in found]
