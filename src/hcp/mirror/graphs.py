"""Where update graphs come from: a server that speaks Cincinnati's protocol, a file, or an image."""

from __future__ import annotations

import asyncio
from pathlib import Path

from yarl import URL

from hcp.graph import GRAPH_FILE, Graph, GraphError, parse
from hcp.mirror import fetch
from hcp.mirror.sources import Sources
from hcp.oci.reference import Reference
from hcp.oci.trust import Trust

SERVERS = {
    "ocp": "https://api.openshift.com/api/upgrades_info/v1/graph",
    "okd": "https://amd64.origin.releases.ci.openshift.org/graph",
}
IMAGE = "docker://"
_HINT = "--update-url names another server, a file with the graph, or docker://IMAGE"


class Graphs:
    """Graphs by channel and architecture, each asked for once."""

    def __init__(self, sources: Sources, place: str = "", trust: Trust | None = None) -> None:
        self._sources = sources
        self._place = place
        self._trust = trust or Trust()
        self._known: dict[tuple[str, str, str], Graph] = {}
        self._whole: Graph | None = None

    async def channel(self, kind: str, name: str, architecture: str) -> Graph:
        key = (kind, name, architecture)
        if key not in self._known:
            self._known[key] = (await self._read(kind, name, architecture)).channel(name)
        found = self._known[key]
        if not found.nodes:
            other = ", ".join(self._whole.channels[:12]) if self._whole else ""
            raise GraphError(
                f"the update graph has no channel {name}",
                hint=f"it has {other}" if other else f"check its name; {_HINT}",
            )
        return found

    @property
    def seen(self) -> Graph:
        """All that was read."""
        found = Graph()
        for graph in self._known.values():
            found = found.merged(graph)
        return found

    async def _read(self, kind: str, name: str, architecture: str) -> Graph:
        place = self._place or SERVERS[kind]
        if place.startswith(("http://", "https://")):
            query = {"channel": name, "arch": architecture}
            return parse(await self._ask(URL(place).update_query(query)))
        if self._whole is None:
            if place.startswith(IMAGE):
                self._whole = await self._from_image(Reference.parse(place.removeprefix(IMAGE)))
            else:
                self._whole = await asyncio.to_thread(_from_file, Path(place.removeprefix("file://")))
        return self._whole

    async def _from_image(self, ref: Reference) -> Graph:
        files = await self._sources.patiently(lambda: self._sources.client(ref).read_files(ref, [GRAPH_FILE]))
        if GRAPH_FILE not in files:
            raise GraphError(f"the image {ref} has no file {GRAPH_FILE}", hint="name an image that carries a graph")
        return parse(files[GRAPH_FILE])

    async def _ask(self, url: URL) -> bytes:
        try:
            return await fetch.get(url, self._trust, accept="application/json")
        except fetch.NotFetched as error:
            raise GraphError(
                f"the update graph cannot be read from {url.origin()}", cause=error.cause, hint=_HINT
            ) from error


def _from_file(path: Path) -> Graph:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise GraphError(
            f"the update graph {path} cannot be read", cause=error.strerror or str(error), hint=_HINT
        ) from error
