"""Registry clients kept between passes, so that what one pass read the next one remembers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from hcp.oci.address_policy import OPEN, AddressPolicy
from hcp.oci.auth import Auths
from hcp.oci.client import RegistryClient
from hcp.oci.mirrors import Mirror
from hcp.oci.trust import Trust

MAX_CLIENTS = 64


class RegistryPool:
    """One client per pull secret, mirrors and trust; clusters that share them share its memory, others never do."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, RegistryClient] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def get(
        self,
        auths: Mapping[str, Any] | None = None,
        ca_pem: str | None = None,
        mirrors: Iterable[Mirror] = (),
        registry_cas: Mapping[str, str] | None = None,
        address_policy: AddressPolicy = OPEN,
    ) -> RegistryClient:
        """The client for exactly these settings. Do not close it."""
        mirrors = tuple(mirrors)
        settings: list[Any] = [auths, ca_pem, [repr(m) for m in mirrors], registry_cas]
        settings += [address_policy.guarded, sorted(address_policy.declared), sorted(address_policy.insecure)]
        key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=dict).encode()).hexdigest()
        client = self._clients.get(key)
        if client is None:
            client = RegistryClient(
                Auths(auths),
                mirrors=mirrors,
                trust=Trust(ca_pem, registry_cas),
                address_policy=address_policy,
                trust_env=True,
            )
            self._clients[key] = client
            while len(self._clients) > MAX_CLIENTS:
                self._retire(self._clients.popitem(last=False)[1])
        self._clients.move_to_end(key)
        return client

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), OrderedDict()
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*(c.close() for c in clients), *self._closing, return_exceptions=True)

    def _retire(self, client: RegistryClient) -> None:
        task = asyncio.get_running_loop().create_task(client.close_when_idle())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
