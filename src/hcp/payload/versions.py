"""Reading `versions.toml`, the one place where versions and sources are pinned."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hcp.errors import HcpError


def recipe_dir(name: str) -> Path:
    """The folder with a component's recipe files (it may not exist)."""
    return Path(str(files("hcp.payload"))) / "recipes" / name


@cache
def table() -> dict[str, Any]:
    return tomllib.loads((Path(str(files("hcp.payload"))) / "versions.toml").read_text())


def tool_version(name: str) -> str:
    version: str = table()["tools"][name]
    return version


def component_table(name: str) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = table()["component"][name]
    except KeyError:
        raise HcpError(f"versions.toml says nothing about {name}") from None
    return entry
