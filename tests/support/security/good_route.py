"""A Route that others must not disturb, and a kind of Routes that refuses nothing."""

from __future__ import annotations

from typing import Any

from tests.support.router import World

GOOD = "good.example.com"


def loose(schema: Any) -> Any:
    """The definition of a cluster that checks nothing by itself."""
    if isinstance(schema, dict):
        return {
            key: loose(value)
            for key, value in schema.items()
            if key not in ("pattern", "maxLength", "x-kubernetes-validations", "enum", "maximum", "minimum")
            or not isinstance(value, str | int | list)
        }
    return [loose(one) for one in schema] if isinstance(schema, list) else schema


async def serve_good(world: World, name: str = "good", host: str = GOOD) -> None:
    await world.service(name, await world.backend(name))
    await world.route(name, name, host=host)
    await world.reaches(host, name)
