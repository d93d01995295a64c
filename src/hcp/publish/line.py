"""The `hcp install` line that fits what was published."""

from __future__ import annotations

from hcp.publish.run import Published


def install_words(published: Published, *, ca: str = "", insecure: bool = False, pull_secret: str = "") -> list[str]:
    """What follows `hcp`: image, default release, supported versions, and how the registry is reached."""
    words = ["install", "--image", published.operator]
    if published.releases:
        words += ["--default-release-image", published.releases[published.newest]]
        words += ["--supported-versions", ",".join(published.minors)]
    if pull_secret:
        words += ["--pull-secret", pull_secret]
    if ca:
        words += ["--additional-trust-bundle", ca]
    if insecure:
        words += ["--insecure-registries", published.target.registry]
    return words
