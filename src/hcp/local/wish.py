"""What a person asked of `up`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Wish:
    name: str = "default"
    profile: str | None = None
    from_dir: Path | None = None
    download: bool = False
    releases: tuple[str, ...] = ()
    """Kubernetes minors whose releases go into the cluster's registry."""
