"""`payload build`: makes what is missing in the cache, and says where each part came from."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

COMMAND = Command(
    "payload build",
    "Build binaries, images and releases",
    long="Makes the named components and what they are made of; without names, all of them but the "
    "Kubernetes project's test suite. What is in the cache "
    "($XDG_CACHE_HOME/hcp) with the right checksum is used as it is. Then --from is tried, then official builds and "
    "images by checksum, where their publishers can be reached; the rest is built with Go and Debian packages. "
    "A build that was stopped goes on where it was. HCP_MIRRORS names other places to download from: docs/payload.md.",
    examples=(
        ("Everything", "{prog} payload build"),
        ("Only what a hosted API server needs", "{prog} payload build etcd kubernetes-1.36"),
        ("From source, whatever could be downloaded", "{prog} payload build --build"),
        ("Binaries you already have", "{prog} payload build etcd --from ./bin"),
    ),
    args=(Arg("COMPONENT", "component to build, as `payload list` names it", optional=True, many=True),),
    flags=(
        Flag("from", "string", "", "folder with ready binaries, or with one folder per component", metavar="dir"),
        Flag("first", "stringArray", (), "component to have before the others are begun", metavar="component"),
        *SOURCE_FLAGS,
    ),
    handler="hcp.cli.payload.build:run",
)


def run(call: Call) -> None:
    from pathlib import Path

    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.errors import HcpError
    from hcp.payload import Engine, timeline

    end_like_an_interrupt()
    folder = Path(call.text("from")) if call.text("from") else None
    if folder is not None and not folder.is_dir():
        raise HcpError(f"There is no folder {folder}", hint="--from takes a folder with binaries.", exit_code=2)
    engine = Engine(from_dir=folder, use_downloads=not build_only(call))
    names = list(call.args) or engine.registry.usual()
    engine.ensure(call.items("first"))
    for name, path in engine.ensure(names).items():
        print(f"{name}\t{path}")
    if len(engine.made) > 1:
        note(timeline.text(engine.made))
