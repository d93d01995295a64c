"""What the tags of catalogs mean now: a catalog beside a control plane is started by digest, and anew by another one.

Inside a guest operator-lifecycle-manager looks for new images itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from hcp.errors import HcpError
from hcp.hostedcluster.asking import AGAIN, Asking
from hcp.hostedcluster.releases import Releases
from hcp.oci.reference import Reference

# As often as a guest does it.
FRESH = 600.0
SECONDS = 60.0
Digests = Mapping[str, str]


class CatalogDigests(Asking[tuple[str, ...], Digests]):
    """By image as it is named; one that could not be asked for is missing."""

    what = "catalogs"

    def __init__(self, releases: Releases, ended: Callable[[str], None]) -> None:
        super().__init__(ended)
        self._releases = releases

    async def answer(self, cluster: dict[str, Any], question: tuple[str, ...]) -> tuple[Digests, float]:
        found = {}
        for image in question:
            try:
                async with asyncio.timeout(SECONDS):
                    client = self._releases.client(await self._releases.access(cluster))
                    ref = Reference.parse(image)
                    found[image] = f"{ref.name}@{await client.digest(ref)}"
            except (TimeoutError, HcpError):
                continue
        return found, FRESH if len(found) == len(question) else AGAIN
