"""Authorities that podman and docker know for one registry: `certs.d/<host>/*.crt`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def places(environment: Mapping[str, str] = os.environ) -> list[Path]:
    home = Path(environment.get("HOME") or "/")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return [config / "containers/certs.d", Path("/etc/containers/certs.d"), Path("/etc/docker/certs.d")]


def find(registry: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The certificates for a registry, as `Trust` takes them; none if there are none."""
    for place in places(environment):
        folder = place / registry
        if folder.is_dir():
            texts = [file.read_text(errors="replace") for file in sorted(folder.glob("*.crt"))]
            if texts:
                return {registry: "\n".join(texts)}
    return {}
