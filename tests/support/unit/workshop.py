"""A registry of tiny components for tests: real engine, real store, builds that only write a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hcp.payload import BuildContext, Component, Engine, Progress
from hcp.payload.registry import Registry
from hcp.payload.store import Store


class Workshop:
    """Components, a store in a temporary folder, and a record of what was built."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root / "cache")
        self.registry = Registry()
        self.built: list[str] = []
        self.screen = io.StringIO()

    def add(
        self,
        name: str,
        *,
        deps: tuple[str, ...] = (),
        inputs: str = "",
        content: str | None = None,
        during: Callable[[BuildContext], None] | None = None,
        compiles: bool = False,
    ) -> Component:
        def build(ctx: BuildContext) -> None:
            self.built.append(name)
            (ctx.out / "bin").mkdir()
            (ctx.out / "bin" / name).write_text(content or f"binary of {name}\n")
            if during is not None:
                during(ctx)

        component = Component(name, "1.0", build, deps, lambda: inputs, (f"bin/{name}",), compiles=compiles)
        self.registry.register(component)
        return component

    def change(self, name: str, **fields: object) -> None:
        """The same components with one of them changed, as after an upgrade of hcp."""
        components = [self.registry.get(other) for other in self.registry.names()]
        self.registry = Registry(
            replace(component, **fields) if component.name == name else component  # type: ignore[arg-type]
            for component in components
        )

    def engine(self, *, from_dir: Path | None = None, use_downloads: bool = False) -> Engine:
        progress = Progress(self.screen, live=False)
        return Engine(self.registry, self.store, progress, from_dir=from_dir, use_downloads=use_downloads)

    def lines(self) -> list[str]:
        return self.screen.getvalue().splitlines()
