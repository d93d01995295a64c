"""The update graph of published releases: in an image beside them, `graph:latest`.

Kubernetes moves a control plane within its minor or to the next one, never back. So the graph follows from the
versions, and what an earlier run published stays in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hcp import graph
from hcp.errors import HcpError
from hcp.graph.model import CHANNELS
from hcp.oci import RegistryClient
from hcp.oci.errors import UnknownImage
from hcp.oci.push import Pusher
from hcp.oci.writer import ImageConfig, Layer, write_image
from hcp.publish.target import Target

NAME, TAG = "graph", "latest"
KINDS = ("candidate", "stable")


def of_releases(images: Mapping[str, str], known: graph.Graph | None = None) -> graph.Graph:
    """Version → image, and what was published before; the image of this run counts."""
    payloads = {node.version: node.payload for node in (known.nodes.values() if known else ())}
    payloads |= images
    minors = {version: _minor(version) for version in payloads}
    nodes = {
        version: graph.Node(version, payload, {CHANNELS: ",".join(_channels(minors[version], set(minors.values())))})
        for version, payload in payloads.items()
    }
    edges = frozenset(
        (old, new) for old in nodes for new in nodes if _leads(minors[old], minors[new]) and _newer(new, old)
    )
    return graph.Graph(nodes, edges)


async def published(client: RegistryClient, image: str) -> graph.Graph | None:
    """The graph in an image; None where there is no such image yet."""
    try:
        files = await client.read_files(image, (graph.GRAPH_FILE,))
    except UnknownImage:
        return None
    if graph.GRAPH_FILE not in files:
        raise HcpError(f"the image {image} carries no update graph", cause=f"it has no file {graph.GRAPH_FILE}")
    return graph.parse(files[graph.GRAPH_FILE])


async def push(
    pusher: Pusher, client: RegistryClient, target: Target, images: Mapping[str, str], workspace: Path
) -> str:
    """Make the graph tell of these releases, too; says how it is named."""
    name = f"{target.registry}/{target.repository(NAME)}:{TAG}"
    layer = Layer("the update graph")
    layer.file(graph.GRAPH_FILE, graph.dump(of_releases(images, await published(client, name))))
    made = write_image(workspace / NAME, name, [layer], ImageConfig())
    await pusher.push(made.path, target.repository(NAME), tag=TAG)
    return name


def _minor(version: str) -> tuple[int, int]:
    major, minor, _ = graph.Version.parse(version).numbers
    return major, minor


def _newer(new: str, old: str) -> bool:
    return graph.order(old) < graph.order(new)


def _leads(old: tuple[int, int], new: tuple[int, int]) -> bool:
    return new in (old, (old[0], old[1] + 1))


def _channels(minor: tuple[int, int], known: set[tuple[int, int]]) -> list[str]:
    """A channel has the releases of its minor, and those of the one before, from which one gets there."""
    ends = [end for end in sorted({minor, (minor[0], minor[1] + 1)}) if end in known]
    return [f"{kind}-{major}.{number}" for kind in KINDS for major, number in ends]
