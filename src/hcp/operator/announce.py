"""Which operator runs here, for `hcp version` and `--version-check`.

`hcp install` cannot know it: the image it deploys may hold another version than the client that deploys it.
"""

from __future__ import annotations

import asyncio
import logging

from hcp.api import names
from hcp.build_info import identity
from hcp.errors import HcpError
from hcp.kube import Client
from hcp.kube.resources import CONFIGMAPS

log = logging.getLogger(__name__)


async def tell_version(client: Client, namespace: str) -> None:
    """Once per start; nothing is written when it is there already, and a failure costs nobody a control plane."""
    own = await asyncio.to_thread(identity)
    try:
        found = await client.get_or_none(CONFIGMAPS, names.SUPPORTED_VERSIONS, namespace)
        # Only a developer's process comes before `hcp install`, which makes the ConfigMap.
        if found is not None and (found.get("data") or {}).get(names.SERVER_VERSION_KEY) != own:
            body = {"data": {names.SERVER_VERSION_KEY: own}}
            await client.patch(CONFIGMAPS, names.SUPPORTED_VERSIONS, namespace, body)
    except HcpError as exc:
        log.warning("cannot tell the operator's version", extra={"version": own, "error": str(exc)})
