"""`create cluster`: read the flags, then either print the objects or hand them to the cluster."""

from __future__ import annotations

from hcp.cli.create.cluster.from_flags import cluster_options, is_render
from hcp.cli.create.cluster.objects import objects
from hcp.cli.create.options import ClusterOptions
from hcp.cli.engine.command import Call
from hcp.cli.engine.render import documents, write
from hcp.cli.engine.terminal import note, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any


def run(call: Call) -> int | Coroutine[Any, Any, int]:
    options = cluster_options(call)
    if not is_render(call):
        from hcp.cli.create.cluster.apply import create

        return create(call, options)
    if call.text("release-stream") and not options.release_image:
        return _render_stream(call, options)
    return render(call, options)


def render(call: Call, options: ClusterOptions) -> int:
    """Prints what an apply would send. Secrets only on request: the output often ends up in a repository."""
    found = objects(options)
    sensitive = call.switch("render-sensitive")
    if not sensitive:
        left_out = [obj["metadata"]["name"] for obj in found if obj["kind"] == "Secret"]
        found = [obj for obj in found if obj["kind"] != "Secret"]
        note(f"Secrets are left out and have to exist: {', '.join(left_out)}; --render-sensitive includes them")
    if not options.release_image:
        warn("no --release-image: the field is empty, and applying it needs an image filled in")
    write(documents(found), call.text("render-into"), sensitive=sensitive)
    return 0


async def _render_stream(call: Call, options: ClusterOptions) -> int:
    """A release stream can only be looked up with a cluster and its supported versions at hand."""
    from hcp.cli.shared.cluster import connect
    from hcp.cli.shared.release_default import from_stream

    async with connect(call) as client:
        options.release_image = await from_stream(client, call.text("release-stream"))
    if options.workers is not None:
        options.workers.release_image = options.release_image
    return render(call, options)
