"""`mirror`: an image set from registries into a registry, onto a disk, or from there into a registry."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag, UsageError
from hcp.cli.mirror.flags import COMMON, CONFIG, DRY_RUN, WORKSPACE

COMMAND = Command(
    "mirror",
    "Mirror releases, operators and images into a registry, or over a disk",
    long="Copies what an image set configuration names. Only what the target lacks is sent; run it again after any\n"
    "interruption and it goes on. An image that cannot be had is said and the rest is mirrored; the exit code is the\n"
    "sum of 2 (releases), 4 (operators), 8 (additional images), 16 (helm) for what failed, 1 for anything else.\n"
    "Files for clusters are in DIR/working-dir/cluster-resources. Also installed as oc-mirror, for `oc mirror --v2`.",
    examples=(
        ("From registries into one", "{prog} mirror -c isc.yaml --workspace file://work docker://registry.lan:5000"),
        ("Onto a disk", "{prog} mirror -c isc.yaml file://disk"),
        ("From the disk into a registry", "{prog} mirror -c isc.yaml --from file://disk docker://registry.lan:5000"),
        ("Only look", "{prog} mirror -c isc.yaml --workspace file://work docker://registry.lan:5000 --dry-run"),
    ),
    args=(Arg("TARGET", "docker://REGISTRY[/PATH], or file://DIR for archives"),),
    flags=(
        CONFIG,
        WORKSPACE,
        Flag("from", "string", "", "folder with archives, or a file that payload export wrote: file://PLACE",
             metavar="file://place"),
        Flag("since", "string", "", "archive all that is new since that day, not since the last run",
             metavar="yyyy-mm-dd"),
        Flag("strict-archive", "bool", False, "refuse archives larger than archiveSize, also for one large layer"),
        Flag("remove-signatures", "bool", False, "leave out signatures that lie beside images"),
        Flag("ignore-release-signature", "bool", False, "mirror releases also without their detached signatures"),
        DRY_RUN,
        *COMMON,
    ),
    exclusive=(("from", "workspace"), ("from", "since")),
    handler="hcp.cli.mirror.command:run",
)  # fmt: skip


async def run(call: Call) -> int:
    from hcp.cli.mirror import ways
    from hcp.mirror.workspace import SCHEME

    target = call.arg("TARGET")
    if target.startswith(SCHEME):
        if call.text("from"):
            raise UsageError(
                "--from leads to a registry", cause=f"{target} is a folder", hint="the target is docker://REGISTRY"
            )
        return await ways.to_disk(call)
    if call.text("from"):
        return await ways.from_disk(call)
    if not call.text("workspace"):
        raise UsageError(
            "it is not said where to work",
            hint="--workspace file://DIR for registry to registry, --from file://DIR for archives to a registry",
        )
    return await ways.to_registry(call)
