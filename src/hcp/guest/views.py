"""The watched views of all guests: begun when their API answers, ended with their client or their cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hcp.guest.view import GuestView
from hcp.kube import Client

NewView = Callable[[str, GuestView], None]


class Views:
    """One per hosted namespace."""

    def __init__(self) -> None:
        self._views: dict[str, GuestView] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._told: list[NewView] = []
        self._ending: set[asyncio.Task[None]] = set()

    def on_new(self, tell: NewView) -> None:
        """Call `tell` with each view before it begins to follow, to attach listeners."""
        self._told.append(tell)

    def known(self, hosted: str) -> GuestView | None:
        return self._views.get(hosted)

    async def get(self, hosted: str, client: Client) -> GuestView:
        """The view through this client; another client begins a new one."""
        async with self._locks.setdefault(hosted, asyncio.Lock()):
            view = self._views.get(hosted)
            if view is None or view.client is not client:
                self.drop(hosted)
                view = self._views[hosted] = GuestView(client)
                for tell in self._told:
                    tell(hosted, view)
            await view.start()
            return view

    def drop(self, hosted: str) -> None:
        """Nobody looks into this guest any more."""
        view = self._views.pop(hosted, None)
        if view is not None:
            task = asyncio.get_running_loop().create_task(view.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        for hosted in list(self._views):
            self.drop(hosted)
        await asyncio.gather(*self._ending)
