"""`local push`: put payload images into an embedded cluster's registry."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.local.common import NAME
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

COMMAND = Command(
    "local push",
    "Put images into an embedded cluster's registry",
    long="Builds the named images where they are missing and pushes them. What the registry has is not sent again.",
    examples=(("The operator and a release", "sudo {prog} local push image-hcp release-1.36"),),
    args=(Arg("COMPONENT", "image or release, as `payload list` names it", many=True),),
    flags=(NAME, *SOURCE_FLAGS),
    handler="hcp.cli.local.push:run",
)


async def run(call: Call) -> None:
    from hcp.cli.engine.terminal import note
    from hcp.local.lifecycle.push import push_components

    pushed = await push_components(call.text("name"), call.args, note, build=build_only(call))
    for component, reference in pushed.items():
        print(component, reference)
