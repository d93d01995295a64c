"""The API server that the next test needs is started while this one runs: most of a start is waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from tests.support.api_server import ApiServer


class Ahead:
    """As many as are wanted, one ahead."""

    def __init__(self, make: Callable[[], ApiServer], wanted: int) -> None:
        self._make = make
        self._left = wanted
        self._threads = ThreadPoolExecutor(1)
        self._next: Future[ApiServer] | None = None

    def take(self) -> ApiServer:
        server = (self._next or self._begin()).result()
        self._next = self._begin() if self._left > 0 else None
        return server

    def close(self) -> None:
        if self._next is not None:
            self._next.result().stop()
        self._threads.shutdown()

    def _begin(self) -> Future[ApiServer]:
        self._left -= 1
        return self._threads.submit(self._start)

    def _start(self) -> ApiServer:
        server = self._make()
        try:
            server.start()
        except BaseException:
            server.stop()
            raise
        return server
