"""`release diff`: what is different between two releases."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.release.flags import OUTPUT, REGISTRY_FLAGS, WHICH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hcp.release import Release

COMMAND = Command(
    "release diff",
    "Show what is different between two releases",
    long="Compares versions and images. Images are the same when their digests are, wherever they lie: a published\n"
    "release does not differ from the one it was made from.",
    examples=(("What an upgrade brings", "{prog} release diff 1.35 registry.example.com/team/hcp/release:1.36.3"),),
    args=(Arg("FROM", WHICH), Arg("TO", WHICH)),
    flags=(*REGISTRY_FLAGS, OUTPUT),
    handler="hcp.cli.release.diff:run",
)
_NONE = "-"


async def run(call: Call) -> None:
    import json

    from hcp.cli.engine.table import table
    from hcp.cli.release.access import read_release

    one, other = await read_release(call, call.arg("FROM")), await read_release(call, call.arg("TO"))
    versions, images = version_changes(one, other), image_changes(one, other)
    if call.text("output") == "json":
        print(json.dumps({"versions": versions, "images": images}, indent=2))
        return
    if not versions and not images:
        print(f"No differences: both are {one.version} with the same images.")
        return
    if versions:
        print(table(["VERSION OF", "FROM", "TO"], [[name, *pair] for name, pair in versions.items()]))
    if versions and images:
        print()
    if images:
        rows = [[name, *(_short(text) for text in pair)] for name, pair in images.items()]
        print(table(["IMAGE", "FROM", "TO"], rows))


def version_changes(one: Release, other: Release) -> dict[str, list[str]]:
    return _changes(
        {"release": one.version, **one.component_versions}, {"release": other.version, **other.component_versions}
    )


def image_changes(one: Release, other: Release) -> dict[str, list[str]]:
    """Components, and the boot disk, whose digests differ."""
    return _changes(_digests(one), _digests(other))


def _digests(release: Release) -> dict[str, str]:
    images = {**release.components, **({"boot disk": release.boot_disk} if release.boot_disk else {})}
    return {name: image.rpartition("@")[2] for name, image in images.items()}


def _changes(one: dict[str, str], other: dict[str, str]) -> dict[str, list[str]]:
    names = sorted(one.keys() | other.keys())
    pairs = {name: [one.get(name, _NONE), other.get(name, _NONE)] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _short(digest: str) -> str:
    return digest if digest == _NONE else digest.removeprefix("sha256:")[:12]
