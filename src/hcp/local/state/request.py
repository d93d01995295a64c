"""What a person asked of `up`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_RELEASES = ("1.36",)


@dataclass(frozen=True)
class UpRequest:
    name: str = "default"
    profile: str | None = None
    from_dir: Path | None = None
    build: bool = False
    """Build from source what could be downloaded."""
    releases: tuple[str, ...] | None = None
    """Kubernetes minors whose releases go into the cluster's registry; not said: what the profile needs."""

    volumes: int | None = None
    """How many bytes all volumes together may hold; not said: most of what is free when the cluster is made."""

    nodes: int | None = None
    """How many nodes there shall be; not said: as many as there are."""

    extras: tuple[str, ...] = ()
    """What to add to the profile."""

    ip_family: str | None = None
    """Of pods, Services and nodes; not said: that of the cluster, IPv4 for a new one."""

    kubernetes: str | None = None
    """The minor of a new cluster; not said: that of the cluster, the newest tried one for a new cluster."""

    until_node: bool = False
    """End as soon as the node is Ready: all else comes with the next run."""

    def releases_for(self, profile: str) -> tuple[str, ...]:
        """A cluster that can run nodes gets what nodes need; a smaller one is usable without and stays quick."""
        if self.releases is not None:
            return self.releases
        return DEFAULT_RELEASES if profile == "kubevirt" else ()
