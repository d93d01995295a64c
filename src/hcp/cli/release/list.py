"""`release list`: the releases in a registry or on this machine."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.release.flags import OUTPUT, REGISTRY_FLAGS

COMMAND = Command(
    "release list",
    "List the releases in a registry or on this machine",
    long="Without a place: the releases that were built here. With one: those that `release push` put there.",
    examples=(
        ("Built here", "{prog} release list"),
        ("Published", "{prog} release list docker://registry.example.com/team/hcp"),
    ),
    args=(Arg("PLACE", "docker://REGISTRY/PATH, as it was given to release push", optional=True),),
    flags=(*REGISTRY_FLAGS, OUTPUT),
    handler="hcp.cli.release.list:run",
)


async def run(call: Call) -> None:
    import json

    from hcp.cli.engine.table import table
    from hcp.cli.engine.terminal import note

    rows = await _published(call, call.arg("PLACE")) if call.arg("PLACE") else _here()
    if call.text("output") == "json":
        print(json.dumps([dict(zip(("version", "image"), row, strict=True)) for row in rows], indent=2))
    elif rows:
        print(table(["VERSION", "IMAGE"], rows))
    else:
        note("There are no releases.")


def _here() -> list[list[str]]:
    from hcp import payload
    from hcp.cli.release.access import local_minors
    from hcp.oci.writer import read_layout
    from hcp.release.layout import from_layout

    found = []
    for minor in local_minors():
        artifact = payload.find(f"release-{minor}")
        if artifact is not None:
            found.append([from_layout(read_layout(artifact / "image")).version, f"oci:{artifact / 'image'}"])
    return found


async def _published(call: Call, place: str) -> list[list[str]]:
    import re

    from hcp.cli.release.access import in_these_words, reader
    from hcp.oci import Reference
    from hcp.publish.target import RELEASE, Target

    target = Target.parse(place)
    ref = Reference(target.registry, target.repository(RELEASE))
    async with reader(call, ref) as client:
        with in_these_words(ref):
            tags = await client.tags(ref)
            # Beside each release: a tag that keeps it, and its signatures.
            wanted = [tag for tag in tags if not re.search(r"-[0-9a-f]{12}$|^sha256-", tag)]
            return [[tag, target.reference(RELEASE, await client.digest(f"{ref}:{tag}"))] for tag in sorted(wanted)]
