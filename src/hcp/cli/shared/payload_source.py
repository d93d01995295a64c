"""The flags that say where missing components come from."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Flag

SOURCE_FLAGS = (
    Flag("build", "bool", False, "build from source what could be downloaded as an official build"),
    Flag("download", "bool", True, "use official builds where their publishers can be reached; =false is --build"),
)


def build_only(call: Call) -> bool:
    return call.switch("build") or not call.switch("download")
