"""The table of all components, and the order in which they have to be built."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from hcp.errors import HcpError
from hcp.payload.component import Component, component_key

# Each of these modules offers `components() -> Iterable[Component]`.
SOURCES = ("hcp.payload.components", "hcp.payload.images")


class Registry:
    """Components by name. Names are unique; dependencies may be registered in any order."""

    def __init__(self, components: Iterable[Component] = ()) -> None:
        self._components: dict[str, Component] = {}
        self._keys: dict[str, str] = {}
        for component in components:
            self.register(component)

    def register(self, component: Component) -> None:
        if component.name in self._components:
            raise ValueError(f"component {component.name} is registered twice")
        self._components[component.name] = component

    def names(self) -> list[str]:
        return list(self._components)

    def usual(self) -> list[str]:
        """What building everything means: all but what is only made on request, and what is made of that."""
        return [name for name in self._components if not any(part.on_request for part in self.order([name]))]

    def get(self, name: str) -> Component:
        try:
            return self._components[name]
        except KeyError:
            raise HcpError(
                f'There is no payload component "{name}"',
                hint=f"{self._like(name)}`hcp payload list` shows all components.",
                exit_code=2,
            ) from None

    def _like(self, name: str) -> str:
        close = get_close_matches(name, self._components, 3)
        return f"Did you mean {' or '.join(close)}? " if close else ""

    def order(self, names: Iterable[str]) -> list[Component]:
        """The named components and everything below them, dependencies first, otherwise in the order asked for."""
        done: dict[str, Component] = {}
        path: list[str] = []

        def visit(name: str) -> None:
            if name in done:
                return
            if name in path:
                raise ValueError("components depend on each other: " + " → ".join([*path, name]))
            path.append(name)
            component = self.get(name)
            for dep in component.deps:
                visit(dep)
            path.pop()
            done[name] = component

        for name in names:
            visit(name)
        return list(done.values())

    def key(self, name: str) -> str:
        if name not in self._keys:
            component = self.get(name)
            self._keys[name] = component_key(component, {dep: self.key(dep) for dep in component.deps})
        return self._keys[name]


@cache
def default_registry() -> Registry:
    """Every component that hcp knows."""
    registry = Registry()
    for source in SOURCES:
        for component in import_module(source).components():
            registry.register(component)
    return registry
