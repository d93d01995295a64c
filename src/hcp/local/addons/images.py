"""Images of a cluster: which ones, how pods name them, and pushing them into its registry."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hcp.local.network.addresses import REGISTRY
from hcp.local.state.layout import Layout
from hcp.oci.push import Pusher
from hcp.oci.writer_layout import read_layout
from hcp.payload.image import image_digest, reference
from hcp.payload.published import is_image, repository, tag

PREFIX = "image-"
_AT_ONCE = 3


def references(paths: Mapping[str, Path]) -> dict[str, str]:
    """Component `image-x` → how a pod names it, by digest."""
    return {
        name.removeprefix(PREFIX): reference(repository(path), image_digest(path))
        for name, path in paths.items()
        if is_image(path)
    }


async def push(layout: Layout, artifacts: Iterable[Path], say: Callable[[str], None]) -> int:
    """Pushes what the registry does not have yet, by digest and by tag. Gives the bytes that were sent."""
    folder = os.open(layout.run, os.O_RDONLY | os.O_DIRECTORY)
    slots = asyncio.Semaphore(_AT_ONCE)
    try:
        # Through the open folder, because a Unix socket's path may have at most 107 bytes.
        socket = f"/proc/self/fd/{folder}/{layout.push_socket.name}"
        async with Pusher(f"http://{REGISTRY}", socket=socket) as pusher:

            async def one(artifact: Path) -> None:
                async with slots:
                    before = pusher.sent_bytes
                    await pusher.push(artifact / "image", repository(artifact), tag=tag(artifact))
                    if pusher.sent_bytes > before:
                        size = read_layout(artifact / "image").size >> 20
                        say(f"  pushed {repository(artifact)} ({size} MiB)")

            await asyncio.gather(*(one(artifact) for artifact in artifacts))
            return pusher.sent_bytes
    finally:
        os.close(folder)
