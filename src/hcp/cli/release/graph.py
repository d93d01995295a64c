"""`release graph`: which release leads to which."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command
from hcp.cli.release.flags import OUTPUT, REGISTRY_FLAGS

COMMAND = Command(
    "release graph",
    "Show which releases lead to which, or write the graph as a file",
    long="The update graph that `release push` keeps beside the releases. As JSON it is what update services serve\n"
    "(the Cincinnati protocol): put the file on any web server and name its address as updateService of a cluster.",
    examples=(
        ("Look", "{prog} release graph docker://registry.example.com/team/hcp"),
        ("A file for a web server", "{prog} release graph docker://registry.example.com/team/hcp -o json > graph.json"),
    ),
    args=(Arg("PLACE", "docker://REGISTRY/PATH, as it was given to release push"),),
    flags=(*REGISTRY_FLAGS, OUTPUT),
    handler="hcp.cli.release.graph:run",
)


async def run(call: Call) -> None:
    from hcp import graph
    from hcp.cli.engine.table import table
    from hcp.cli.release.access import in_these_words, reader
    from hcp.errors import HcpError
    from hcp.oci import Reference
    from hcp.publish.graph import NAME, TAG, published
    from hcp.publish.target import Target

    target = Target.parse(call.arg("PLACE"))
    ref = Reference(target.registry, target.repository(NAME), TAG)
    async with reader(call, ref) as client:
        with in_these_words(ref):
            known = await published(client, str(ref))
    if known is None:
        raise HcpError(f"there is no update graph at {target}", hint=f"`{call.prog} release push` writes one")
    if call.text("output") == "json":
        print(graph.dump(known).decode())
        return
    rows = []
    for version in reversed(known.versions):
        node = known.nodes[version]
        leads = ", ".join(one.version for one in known.updates(version)) or "-"
        rows.append([version, ", ".join(node.channels) or "-", leads, node.payload])
    print(table(["VERSION", "CHANNELS", "UPDATES TO", "IMAGE"], rows))
