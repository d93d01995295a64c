"""`release info`: what one release is made of."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.release.flags import OUTPUT, REGISTRY_FLAGS, WHICH

COMMAND = Command(
    "release info",
    "Show what a release is made of",
    long="Reads one release, Kubernetes' or OpenShift's, and prints its version, the images it names and the disk its\n"
    "nodes boot from.",
    examples=(
        ("In a registry", "{prog} release info registry.example.com/team/hcp/release:1.36.3"),
        ("Built here", "{prog} release info 1.36"),
    ),
    args=(Arg("RELEASE", WHICH),),
    flags=(*REGISTRY_FLAGS, OUTPUT),
    handler="hcp.cli.release.info:run",
)


async def run(call: Call) -> None:
    import json

    from hcp.cli.engine.table import table
    from hcp.cli.release.access import read_release

    found = await read_release(call, call.arg("RELEASE"))
    if call.text("output") == "json":
        data = {
            "version": found.version,
            "image": found.image,
            "digest": found.digest,
            "architecture": found.arch,
            "versions": found.component_versions,
            "components": found.components,
            "bootDisk": found.boot_disk,
        }
        print(json.dumps(data, indent=2))
        return
    print(f"Version:       {found.version}")
    print(f"Digest:        {found.digest}")
    print(f"Architecture:  {found.arch}")
    versions = (f"{name} {version}" for name, version in sorted(found.component_versions.items()))
    print(f"Made of:       {', '.join(versions) or 'not said'}")
    print(f"Boot disk:     {found.boot_disk or 'none for KubeVirt'}")
    print()
    print(table(["COMPONENT", "IMAGE"], [[name, image] for name, image in sorted(found.components.items())]))
