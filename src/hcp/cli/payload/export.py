"""`payload export`: built artifacts in one file for another machine."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command

COMMAND = Command(
    "payload export",
    "Pack built artifacts for another machine",
    long="Writes the named components, or all that are in the cache, into one file. `{prog} payload import` on a "
    "machine with the same version of {prog} takes them, and that machine builds nothing.",
    examples=(("Everything that is built", "{prog} payload export payload.tar"),),
    args=(
        Arg("FILE", "file to write"),
        Arg("COMPONENT", "component to pack", optional=True, many=True),
    ),
    handler="hcp.cli.payload.export:run",
)


def run(call: Call) -> None:
    from pathlib import Path

    from hcp.payload.cleaning import human_size
    from hcp.payload.registry import default_registry
    from hcp.payload.store import Store
    from hcp.payload.transfer import export

    target = Path(call.args[0])
    packed = export(Store(), default_registry(), call.args[1:], target)
    print(f"{len(packed)} components in {target} ({human_size(target.stat().st_size)})")
