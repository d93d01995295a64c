"""Whether the control plane that a backup is of still runs somewhere.

Two control planes over the same machines would each replace what the other one does to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

from hcp.backup.objects import Kept
from hcp.controlplane.meta import secret_data

AUTHORITY = "root-ca"
_PATIENCE = 5.0


async def answers(kept: Kept, seconds: float = _PATIENCE) -> bool:
    """Whether somebody at the former address proves to be its API, by a certificate of the cluster's own authority."""
    host, port = kept.endpoint
    pem = next((secret_data(one) for one in kept.keys if one["metadata"]["name"] == AUTHORITY), {}).get("ca.crt", b"")
    if not host or not pem:
        return False
    try:
        context = ssl.create_default_context(cadata=pem.decode())
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    except (OSError, ValueError, TimeoutError):  # an authority that is none proves nothing either
        return False
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()
    return True
