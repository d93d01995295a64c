"""Progress on the terminal and in the log file of the workspace."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from hcp.cli.shared.progress import Progress
from hcp.mirror.workspace import Workspace, now


class Telling:
    def __init__(self, workspace: Workspace) -> None:
        workspace.logs.mkdir(parents=True, exist_ok=True)
        self._log = (workspace.logs / "oc-mirror.log").open("a")
        self._progress = Progress()
        self._text = ""
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._write(f"ended: {error!r}")
        self._progress.close()
        self._log.close()

    def show(self, text: str) -> None:
        self._text = text
        self._progress.show(text)
        self._write(text)

    def step(self, done: int, total: int, name: str) -> None:
        self.show(f"{done} of {total} images: {name}")

    def sent(self, count: int) -> None:
        self._sent += count
        if self._progress.live:
            self._progress.show(f"{self._text}; {self._sent >> 20} MiB sent")

    def _write(self, text: str) -> None:
        self._log.write(f"{now()} {text}\n")
        self._log.flush()
