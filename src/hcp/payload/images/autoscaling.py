"""The image of the autoscaler of node pools. Made when somebody wants pools that follow the load, not before."""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of

COMPONENT = "cluster-autoscaler"


def versions() -> dict[str, str]:
    return {COMPONENT: version_of(COMPONENT)}


def autoscaling_images() -> list[Image]:
    return [Image(COMPONENT, version_of(COMPONENT), binaries(COMPONENT, COMPONENT), entrypoint=(COMPONENT,))]
