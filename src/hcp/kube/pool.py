"""Clients for many clusters, kept open between uses.

An operator talks to its own cluster, to infra clusters and to every guest; opening TLS connections for each pass
would cost more than the pass.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from hcp.kube.client import Client
from hcp.kube.config import ClusterConfig
from hcp.kube.transport import Observer


class ClientPool:
    """One client per key; a changed configuration replaces the client, the old one is closed."""

    def __init__(self, *, user_agent: str = "hcp", observer: Observer | None = None) -> None:
        self._user_agent = user_agent
        self._observer = observer
        self._clients: dict[str, Client] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    def get(self, key: str, config: ClusterConfig) -> Client:
        """The client for `key`, new if there is none or its configuration differs."""
        client = self._clients.get(key)
        if client is None or client.config != config:
            if client is not None:
                self._retire(client)
            client = Client(config, user_agent=self._user_agent, observer=self._observer)
            self._clients[key] = client
        return client

    async def drop(self, key: str) -> None:
        """Close the client of a cluster that is gone."""
        client = self._clients.pop(key, None)
        if client is not None:
            await client.close()

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(c.close() for c in clients), *self._closing)

    def _retire(self, client: Client) -> None:
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
