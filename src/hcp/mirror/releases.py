"""Releases of an image set: which versions, and every image they name."""

from __future__ import annotations

import asyncio

from hcp import graph, release
from hcp.graph import Graph, GraphError, order
from hcp.mirror.built import BUILT, plan_built
from hcp.mirror.config import Platform, ReleaseChannel
from hcp.mirror.graphs import Graphs
from hcp.mirror.plan import BOOT_DISK, COMPONENTS, GRAPH, RELEASES, Item, release_tag
from hcp.mirror.release_signatures import add_signature
from hcp.mirror.scope import Scope
from hcp.oci.reference import Reference
from hcp.oci.writer import ImageConfig, Layer, write_image


def chosen(channel: ReleaseChannel, known: Graph) -> list[str]:
    """The versions of a channel that are asked for, oldest first: without bounds its newest."""
    highest = channel.highest or known.versions[-1]
    lowest = channel.lowest or (known.versions[0] if channel.full else highest)
    for version in (lowest, highest):
        if version not in known.nodes:
            newest = ", ".join(known.versions[::-1][:8])
            raise GraphError(f"the channel {channel.name} has no version {version}", hint=f"its newest are {newest}")
    if order(highest) < order(lowest):
        raise GraphError(
            f"the newest version of the channel {channel.name} is {highest}, older than {lowest}",
            hint="name a minVersion that the channel has",
        )
    if channel.shortest_path:
        return known.shortest_path(lowest, highest)
    return known.between(lowest, highest)


async def plan_platform(scope: Scope, platform: Platform, graphs: Graphs) -> None:
    versions: list[str] = []
    for channel in platform.channels:
        for architecture in platform.architectures:
            with scope.problems("release", f"channel {channel.name}"):
                known = await graphs.channel(channel.kind, channel.name, architecture)
                for version in chosen(channel, known):
                    with scope.problems("release", f"release {version}"):
                        await plan_release(scope, known.nodes[version].payload, architecture, platform.boot_disk)
    for text in platform.releases:
        with scope.problems("release", text):
            found = await plan_release(scope, text, platform.architectures[0], platform.boot_disk)
            versions.append(found.version)
    if platform.graph:
        with scope.problems("release", "update graph"):
            await _graph(scope, platform, graphs, versions)


async def plan_release(scope: Scope, text: str, architecture: str, boot_disk: bool) -> release.Release:
    """A release image and all it names: in the target one repository has the releases, another all their parts."""
    if text.startswith(BUILT):
        return await asyncio.to_thread(plan_built, scope.plan, text.removeprefix(BUILT), boot_disk)
    ref = Reference.parse(text.removeprefix("docker://"))
    found = await scope.sources.patiently(lambda: release.read(scope.sources.client(ref), str(ref)))
    group = f"release {found.version} {architecture}"
    named = [(name, image) for name, image in sorted(found.components.items())]
    if boot_disk and found.boot_disk:
        named.append((BOOT_DISK, found.boot_disk))

    async def component(name: str, image: str) -> list[Item]:
        with scope.problems("release", f"{name} of release {found.version}"):
            tag = release_tag(found.version, architecture, name)
            return await scope.found("release", image, repository=COMPONENTS, tag=tag, group=group, signed=False)
        return []

    await scope.add_all(component(name, image) for name, image in named)
    await add_signature(scope, ref, found.digest)
    tag = release_tag(found.version, architecture)
    scope.add(await scope.found("release", str(ref), repository=RELEASES, tag=tag, group=group, last=True))
    return found


async def _graph(scope: Scope, platform: Platform, graphs: Graphs, versions: list[str]) -> None:
    """The graph of the channels as an image; of releases that were named alone, that of their candidates."""
    for version in [] if platform.channels else versions:
        minor = ".".join(version.split(".")[:2])
        await graphs.channel("ocp", f"candidate-{minor}", platform.architectures[0])
    layer = Layer("the update graph")
    layer.file(graph.GRAPH_FILE, graph.dump(graphs.seen))
    made = write_image(scope.made / "graph", GRAPH, [layer], ImageConfig())
    scope.plan.add(Item("release", "", made.digest, GRAPH, "latest", made="graph", last=True))
