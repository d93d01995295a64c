"""`mirror delete`: take images of an image set out of a registry again."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag, UsageError
from hcp.cli.mirror.flags import COMMON, CONFIG, WORKSPACE

COMMAND = Command(
    "mirror delete",
    "Delete what an image set names from a registry",
    long="Two steps. With --generate and a DeleteImageSetConfiguration a list is written to DIR/working-dir/delete,\n"
    "and nothing is deleted. With --delete-yaml-file and that list the images go. An image that another tag of the\n"
    "repository still names stays; the registry frees the space when it collects its garbage.",
    examples=(
        ("The list", "{prog} mirror delete -c disc.yaml --generate --workspace file://work docker://registry.lan:5000"),
        ("The deed", "{prog} mirror delete --delete-yaml-file work/working-dir/delete/delete-images.yaml "
         "docker://registry.lan:5000"),
    ),
    args=(Arg("TARGET", "docker://REGISTRY[/PATH]"),),
    flags=(
        CONFIG,
        WORKSPACE,
        Flag("generate", "bool", False, "write the list of what would be deleted"),
        Flag("delete-id", "string", "", "ending of the list's name, to tell several apart", metavar="id"),
        Flag("delete-yaml-file", "string", "", "the list of what to delete", metavar="file"),
        Flag("force-cache-delete", "bool", False, "", unused="the cache is not touched", hidden=True),
        Flag("delete-signatures", "bool", False, "", unused="signatures are on the list in any case", hidden=True),
        *COMMON,
    ),
    exclusive=(("generate", "delete-yaml-file"),),
    handler="hcp.cli.mirror.delete:run",
)  # fmt: skip


async def run(call: Call) -> int:
    if call.switch("generate"):
        return await _generate(call)
    if call.text("delete-yaml-file"):
        return await _delete(call)
    raise UsageError(
        "it is not said which step to take",
        hint="--generate writes a list of what would be deleted, --delete-yaml-file FILE deletes what is on it",
    )


async def _generate(call: Call) -> int:
    from hcp.cli.engine.terminal import note
    from hcp.cli.mirror import access
    from hcp.cli.mirror.telling import Telling
    from hcp.cli.mirror.ways import made_plan, problems
    from hcp.mirror import deletion
    from hcp.mirror.run import shortened
    from hcp.mirror.workspace import Workspace, disk_errors, folder
    from hcp.mirror.yaml_text import dump
    from hcp.publish.target import Target

    access.checked(call)
    (images, config), target = access.image_set(call, delete=True), Target.parse(call.arg("TARGET"))
    workspace = Workspace(folder(call.text("workspace"), "--workspace"))
    with workspace.taken(), disk_errors(workspace.root), Telling(workspace) as telling:
        # What was mirrored is looked for in the mirror first: the sources may be far away.
        async with access.sources(call, access.known_mirrors(workspace)) as sources:
            plan = shortened(
                await made_plan(call, images, sources, workspace, telling), target, call.number("max-nested-paths")
            )
        ending = f"-{call.text('delete-id')}" if call.text("delete-id") else ""
        path = workspace.delete / f"delete-images{ending}.yaml"
        workspace.write(path, dump([deletion.listed(plan, target)]))
        workspace.write(workspace.delete / f"delete-imageset-config{ending}.yaml", dump([config]))
    note(f"{len(plan.items)} images would be deleted from {target}; nothing is yet. Look at the list, then run:")
    print(f"{call.prog} mirror delete --delete-yaml-file {path} {call.arg('TARGET')}")
    return problems(plan, workspace)


async def _delete(call: Call) -> int:
    import yaml

    from hcp.cli.engine.files import refuse
    from hcp.cli.engine.terminal import note, warn
    from hcp.cli.mirror import access
    from hcp.mirror import deletion
    from hcp.mirror.yaml_text import load
    from hcp.publish.target import Target

    access.checked(call)
    target = Target.parse(call.arg("TARGET"))
    name = call.text("delete-yaml-file")
    try:
        with open(name, "rb") as file:  # noqa: PTH123, ASYNC230 - one small file before anything begins
            doomed = deletion.parse(load(file), target)
    except (OSError, yaml.YAMLError) as error:
        raise refuse("delete-yaml-file", name, str(error).replace("\n", " "), "a list that --generate wrote") from None
    async with access.pusher(call, target, lambda _: None) as pusher, access.reader(call, target) as client:
        done = await deletion.delete(pusher, client, doomed)
    if done.kept:
        tags = ", ".join(f"{one.repository}:{one.tag}" for one in done.kept[:5])
        warn(f"{len(done.kept)} tags stay, since the registry deletes no single tags and others name the image: {tags}")
    note(f"{len(done.gone)} images were deleted from {target}, {len(done.absent)} were not there")
    return 0
