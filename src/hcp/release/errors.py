"""What can be wrong with a release image."""

from __future__ import annotations

from hcp.errors import HcpError


class ReleaseError(HcpError):
    """The image is no usable release."""


class NotARelease(ReleaseError):
    """The image exists and carries no release description."""

    def __init__(self, image: str, cause: str) -> None:
        super().__init__(
            f"The image {image} is not a release image",
            cause=cause,
            hint="Use the pull spec of a release, for example the one `hcp version` or the release page shows.",
        )


class MissingComponent(ReleaseError):
    """The release names no image for a component that is needed."""

    def __init__(self, image: str, version: str, component: str) -> None:
        super().__init__(
            f"The release {version} ({image}) has no component {component}.",
            hint="Use a complete release, or leave out what needs this component.",
        )
        self.component = component
