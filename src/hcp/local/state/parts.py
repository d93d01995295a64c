"""Which payload components a profile is made of, and where their binaries are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hcp.local.state.spec import DEFAULT_KUBERNETES, Spec

if TYPE_CHECKING:
    from hcp.payload import Progress

ETCD = "etcd"
# Of a cluster that nobody asked another minor for.
API = (ETCD, f"kubernetes-{DEFAULT_KUBERNETES}")
NODE = ("containerd", "runc", "cni-plugins", "registry", "node-tools")
MIRROR_PROXY = "mirror-proxy"
IMAGES = (
    "image-pause",
    "image-kube-router",
    "image-coredns",
    "image-local-path-provisioner",
    "image-local-path-helper",
    "image-router",
)


@dataclass(frozen=True)
class Parts:
    """Finished artifacts of the components a cluster runs, and their versions."""

    paths: Mapping[str, Path]
    versions: Mapping[str, str]

    def binaries(self) -> dict[str, Path]:
        """Every binary by its own name."""
        return {entry.name: entry for path in self.paths.values() for entry in _binaries(path)}

    def binary_versions(self) -> dict[str, str]:
        return {
            entry.name: self.versions.get(component, "")
            for component, path in self.paths.items()
            for entry in _binaries(path)
        }

    def tools(self) -> list[Path]:
        """Artifacts whose `bin` and `lib` the node's processes need to find."""
        return [path for name, path in self.paths.items() if not name.startswith("image-")]


def _binaries(path: Path) -> list[Path]:
    if (path / "image").is_dir():
        return []
    folder = path / "bin" if (path / "bin").is_dir() else path
    return [entry for entry in folder.iterdir() if entry.is_file() and os.access(entry, os.X_OK)]


def process_components(spec: Spec) -> tuple[str, ...]:
    """What has to be there before the first process starts."""
    api = (ETCD, kubernetes(spec.kubernetes))
    if not spec.has_node:
        return api
    return (*api, *NODE, "image-pause", *((MIRROR_PROXY,) if spec.has_mirrors else ()))


def kubernetes(minor: str) -> str:
    """The component that a Kubernetes minor is."""
    return f"kubernetes-{minor}"


def minors() -> list[str]:
    """Kubernetes minors that can be had, the oldest first."""
    from hcp.payload.registry import default_registry

    begins = kubernetes("")
    found = [name.removeprefix(begins) for name in default_registry().names() if name.startswith(begins)]
    return sorted(found, key=lambda minor: tuple(map(int, minor.split("."))))


def gather(spec: Spec, progress: Progress, *, from_dir: Path | None = None, build: bool = False) -> Parts:
    """Makes sure that the processes' binaries are there; builds what is missing."""
    given = os.environ.get("HCP_TEST_BIN")
    if not spec.has_node and given and (Path(given) / "kube-apiserver").is_file():
        # For trying a build of Kubernetes that is not a payload (yet).
        return Parts({"given": Path(given)}, {})
    return ensure(process_components(spec), progress, from_dir=from_dir, build=build)


def ensure(names: Iterable[str], progress: Progress, *, from_dir: Path | None = None, build: bool = False) -> Parts:
    from hcp import payload

    return _with_versions(payload.ensure(names, progress=progress, from_dir=from_dir, build=build))


async def ensure_async(
    names: Iterable[str], progress: Progress, *, from_dir: Path | None = None, build: bool = False
) -> Parts:
    """The same in an event loop: it can be cancelled."""
    from hcp import payload

    return _with_versions(await payload.ensure_async(names, progress=progress, from_dir=from_dir, build=build))


def _with_versions(paths: dict[str, Path]) -> Parts:
    from hcp.payload.registry import default_registry

    registry = default_registry()
    return Parts(paths, {name: registry.get(name).version for name in paths})


def version(component: str) -> str:
    """The pinned version of a component, without building anything."""
    from hcp.payload.registry import default_registry

    return default_registry().get(component).version
