"""The router process: health, HAProxy and the controller together."""

from __future__ import annotations

import resource
import tempfile
from pathlib import Path

from hcp.kube import Client
from hcp.router.config import Settings
from hcp.router.controller import Router
from hcp.router.haproxy import HAProxy
from hcp.runtime import serve_health

# The scope of an address in the kernel's table: others are those of the loopback and of a link.
_GLOBAL = "00"
# HAProxy needs two file descriptors per connection and some of its own.
SPARE = 200


def connections(wanted: int) -> int:
    """As many connections as asked for, or as the limit of open files permits."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return wanted if hard == resource.RLIM_INFINITY else max(100, min(wanted, (hard - SPARE) // 2))


def has_six(table: Path = Path("/proc/net/if_inet6")) -> bool:
    """Whether this pod has an IPv6 address that others can call, beside those of the loopback and of its wire."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return False
    return any(line.split()[3] == _GLOBAL for line in lines)


async def serve(
    client: Client,
    *,
    domain: str,
    http_port: int,
    https_port: int,
    named_port: int,
    health_port: int,
    haproxy: str,
    max_connections: int,
    foreign_wildcards: bool = False,
    certificate: str = "",
    ingress_class: str = "",
    wakes: bool = False,
) -> None:
    """Route until cancelled."""
    with tempfile.TemporaryDirectory(prefix="hcp-router-") as directory:
        most = connections(max_connections)
        ports = (http_port, https_port, named_port)
        settings = Settings(
            Path(directory),
            *ports,
            six=has_six(),
            max_connections=most,
            ends_tls=bool(certificate),
            wakes=wakes,
        )
        process = HAProxy(settings, haproxy)
        router = Router(
            client,
            process,
            domain,
            foreign_wildcards=foreign_wildcards,
            certificate=certificate,
            ingress_class=ingress_class,
        )
        health = await serve_health(
            health_port, lambda: router.ready and process.alive, live_fn=lambda: not router.ready or process.alive
        )
        try:
            await router.run()
        finally:
            await health.close()
