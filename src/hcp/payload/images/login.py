"""The image of the OAuth server. Made when somebody wants to log in by a password, not before."""

from __future__ import annotations

from hcp.payload.image import Image, Take, binaries, version_of

COMPONENT = "dex"


def versions() -> dict[str, str]:
    return {COMPONENT: version_of(COMPONENT)}


def login_images() -> list[Image]:
    """It asks identity providers out in the world, so it knows the public authorities."""
    roots = Take("ca-roots", "certs/*.crt", "/etc/ssl/certs/", mode=0o644)
    return [Image(COMPONENT, version_of(COMPONENT), (*binaries(COMPONENT, "dex"), roots), entrypoint=("dex",))]
