"""`payload import`: artifacts that another machine built."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command

COMMAND = Command(
    "payload import",
    "Unpack artifacts built on another machine",
    long="Takes a file that `{prog} payload export` wrote. Every file is checked against its checksum first.",
    examples=(("On the other machine", "{prog} payload import payload.tar"),),
    args=(Arg("FILE", "file to read"),),
    handler="hcp.cli.payload.import_:run",
)


def run(call: Call) -> None:
    from pathlib import Path

    from hcp.cli.engine.terminal import warn
    from hcp.payload.registry import default_registry
    from hcp.payload.store import Store
    from hcp.payload.transfer import import_file

    taken, left = import_file(Store(), default_registry(), Path(call.args[0]))
    if left:
        warn(f"left out, made for another version of {call.prog}: {', '.join(left)}")
    print(f"{len(taken)} components imported")
