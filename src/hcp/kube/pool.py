"""Clients for many clusters, kept open between uses and closed with those they were for.

An operator talks to its own cluster, to infra clusters and to every guest; opening TLS connections for each pass
would cost more than the pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from hcp.kube.client import Client
from hcp.kube.config import ClusterConfig
from hcp.kube.transport import Observer


class ClientPool:
    """One client per owner and purpose; changed credentials replace it, and the old one is closed."""

    def __init__(self, *, user_agent: str = "hcp", observer: Observer | None = None) -> None:
        self._user_agent = user_agent
        self._observer = observer
        self._clients: dict[tuple[str, str], tuple[str, Client]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._clients)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    def get(self, owner: str, purpose: str, credentials: str, load: Callable[[], ClusterConfig]) -> Client:
        """The client of `owner` for `purpose`; `load` reads the credentials if they are others than before."""
        known = self._clients.get((owner, purpose))
        if known is not None and known[0] == credentials:
            return known[1]
        client = Client(load(), user_agent=self._user_agent, observer=self._observer)
        self._clients[owner, purpose] = (credentials, client)
        if known is not None:
            self._retire(known[1])
        return client

    def drop(self, owner: str, purpose: str | None = None) -> None:
        """Close the client for one purpose, or all of an owner that is gone."""
        for key in [key for key in self._clients if key[0] == owner and purpose in (None, key[1])]:
            self._retire(self._clients.pop(key)[1])

    async def close(self) -> None:
        for owner, purpose in list(self._clients):
            self.drop(owner, purpose)
        await asyncio.gather(*self._closing)

    def _retire(self, client: Client) -> None:
        """In a task of its own: a pass that is ended in the middle must not leave connections behind."""
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
