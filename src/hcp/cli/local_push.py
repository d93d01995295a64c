"""`local push`: put payload images into an embedded cluster's registry."""

from __future__ import annotations

from hcp.cli.command import Arg, Call, Command
from hcp.cli.local_common import NAME

COMMAND = Command(
    "local push",
    "Put images into an embedded cluster's registry",
    long="Builds the named images where they are missing and pushes them. What the registry has is not sent again.",
    examples=(("The operator and a release", "sudo {prog} local push image-hcp release-1.36"),),
    args=(Arg("COMPONENT", "image or release, as `payload list` names it", many=True),),
    flags=(NAME,),
    handler="hcp.cli.local_push:run",
)


async def run(call: Call) -> None:
    from hcp.cli.terminal import note
    from hcp.local.push import push_components

    for component, reference in (await push_components(call.text("name"), call.args, note)).items():
        print(component, reference)
