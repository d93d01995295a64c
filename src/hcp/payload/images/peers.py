"""The image of a peer that benchmarks run beside ours. Made when somebody runs `bench/peers.py`, not before."""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of

COMPONENT = "kamaji"


def peer_images() -> list[Image]:
    return [Image(COMPONENT, version_of(COMPONENT), binaries(COMPONENT, COMPONENT), entrypoint=(COMPONENT,))]
