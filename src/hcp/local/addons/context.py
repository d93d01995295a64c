"""What every step of `up` has at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from hcp.local.state import parts
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import Spec
from hcp.payload import Progress


@dataclass
class Context:
    """The cluster, how to speak to the person, and what earlier runs have finished."""

    layout: Layout
    spec: Spec
    request: UpRequest
    say: Callable[[str], None]
    lap: Callable[[str], None]
    began: float | None = None
    """When the node was started, if it was this run that did it."""
    progress: Progress = field(default_factory=Progress)
    compilers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def ensure(self, names: Iterable[str]) -> dict[str, Path]:
        """Finished artifacts of payload components; builds what is missing.

        Steps that go on at once fetch at once. What is only built is built for one of them after the other, in their
        order: compilers take all of the machine.
        """
        request = self.request
        async with self.compilers if request.build else nullcontext():
            found = await parts.ensure_async(names, self.progress, from_dir=request.from_dir, build=request.build)
        return dict(found.paths)

    def done(self, step: str, digest: str) -> bool:
        """Whether an earlier run finished this step with the very same request."""
        return self.spec.applied.get(step) == digest

    def remember(self, step: str, digest: str) -> None:
        self.spec = replace(self.spec, applied={**self.spec.applied, step: digest})
        specs.save(self.layout, self.spec)
