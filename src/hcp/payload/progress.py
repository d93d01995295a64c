"""Telling a person how far a build is: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TextIO


def about(seconds: float) -> str:
    """40 → a minute; 200 → 3 min; 5400 → 1.5 h. Nobody can promise more."""
    if seconds < 15:
        return "some seconds"
    if seconds < 75:
        return "a minute"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 75 else f"{seconds / 3600:.1f} h"


def duration(seconds: float) -> str:
    """75.4 → 1m15s."""
    whole = int(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02d}s"


class Progress:
    """Shows what is being built, how many are left and how long it has taken. Safe to call from any thread."""

    def __init__(self, stream: TextIO | None = None, *, live: bool | None = None, every: float = 300.0) -> None:
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty() if live is None else live
        self.every = every  # seconds between signs of life where there is no terminal
        self._lock = threading.Lock()
        self._left: list[str] = []
        self._takes: dict[str, float] = {}
        self._now: dict[str, tuple[str, float]] = {}
        """What is being made: name → (what it is doing, since when)."""
        self._users = 0
        self._stop: threading.Event | None = None
        self._ticker: threading.Thread | None = None

    def plan(self, names: list[str], takes: Mapping[str, float] | None = None, verb: str = "make") -> None:
        """These components have to be made too, in this order; `takes` says about how many seconds each needs."""
        with self._lock:
            self._left = list(dict.fromkeys([*self._left, *names]))
            self._takes |= takes or {}
            time_left = self._time_left()
        if names:
            self.line(f"To {verb}: {len(names)}{time_left} ({', '.join(names)})")

    def start(self, name: str, what: str) -> None:
        with self._lock:
            self._now[name] = (what, time.monotonic())
            left, time_left = self._left_after(), self._time_left()
        if not self.live:
            self._print(f"{name}: {what} ({left} left after this{time_left})")
        else:
            self._draw()

    def detail(self, name: str, text: str) -> None:
        """A word on the step within the component; only worth showing live."""
        with self._lock:
            if name in self._now:
                self._now[name] = (text, self._now[name][1])
        if self.live:
            self._draw()

    def done(self, name: str, how: str) -> None:
        with self._lock:
            _, began = self._now.pop(name, ("", time.monotonic()))
            self._left = [other for other in self._left if other != name]
            left = len(self._left)
        self.line(f"{name}: {how} in {duration(time.monotonic() - began)}, {left} left")

    def dropped(self, name: str) -> None:
        """It could not be had this way."""
        with self._lock:
            self._now.pop(name, None)
            self._left = [other for other in self._left if other != name]

    def _left_after(self) -> int:
        """How many have not even begun."""
        return len([name for name in self._left if name not in self._now])

    def _time_left(self) -> str:
        """In words, for what is being made and what has not begun."""
        now, total = time.monotonic(), 0.0
        for name in self._left:
            spent = now - self._now[name][1] if name in self._now else 0.0
            total += max(self._takes.get(name, 0.0) - spent, 0.0)
        return f", about {about(total)} to go" if self._takes else ""

    def line(self, text: str) -> None:
        """One line that stays."""
        self._print(text)
        if self.live and self._now:
            self._draw()

    def __enter__(self) -> Progress:
        """Several may use it at once: together they have one live line."""
        with self._lock:
            self._users += 1
            if self._ticker is None:
                self._stop = threading.Event()
                self._ticker = threading.Thread(target=self._tick, args=(self._stop,), daemon=True)
                self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            stop, ticker = self._stop, self._ticker
            self._ticker = self._stop = None
        if stop is not None and ticker is not None:
            stop.set()
            ticker.join()
            with self._lock:
                self._now.clear()
                self._left.clear()
            if self.live:
                self.stream.write("\r\x1b[K")
                self.stream.flush()

    def _tick(self, stop: threading.Event) -> None:
        while not stop.wait(0.5 if self.live else self.every):
            if self.live:
                self._draw()
            else:
                for name, (what, began) in list(self._now.items()):
                    self._print(f"{name}: {what}, {duration(time.monotonic() - began)} so far")

    def _draw(self) -> None:
        with self._lock:
            if not self._now:
                return
            now = time.monotonic()
            parts = [f"{name}: {what} {duration(now - began)}" for name, (what, began) in self._now.items()]
            text = f"[{self._left_after()} left{self._time_left()}] {' | '.join(parts)}"
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\x1b[K" + text[:width])
            self.stream.flush()

    def _print(self, text: str) -> None:
        with self._lock:
            self.stream.write(("\r\x1b[K" if self.live else "") + text + "\n")
            self.stream.flush()
