"""The plan of a run: each image, where it comes from and where it goes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hcp.errors import HcpError
from hcp.oci.errors import ImageUnauthorized, RegistryUntrusted, UnknownImage
from hcp.oci.reference import DEFAULT_TAG, Reference

Kind = Literal["release", "operator", "additional", "helm"]
# What of an image set failed, as bits of the exit code. 1 is anything else.
EXIT_BITS: dict[Kind, int] = {"release": 2, "operator": 4, "additional": 8, "helm": 16}
RELEASES, COMPONENTS, GRAPH = "openshift/release-images", "openshift/release", "openshift/graph-image"
BOOT_DISK = "kube-virt-container"
# How tags of releases call an architecture that images call otherwise.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Item:
    """One image. `source` is how it was named there; `repository` is below the target's path."""

    kind: Kind
    source: str
    digest: str
    repository: str
    tag: str
    # For a catalog that was filtered, and for the graph: the name of the layout in the workspace.
    made: str = ""
    # A signature beside an image: nobody looks for it under a name of its own.
    silent: bool = False
    # Images that belong together, such as those of one release; the one that names the others goes last.
    group: str = ""
    last: bool = False


@dataclass(frozen=True)
class CatalogTarget:
    """A catalog as it is in the target, for the objects that name it."""

    source: str
    repository: str
    tag: str
    template: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Problem:
    """Something that cannot be mirrored; the rest can."""

    kind: Kind
    what: str
    sentence: str
    hint: str = ""

    @classmethod
    def of(cls, kind: Kind, what: str, error: HcpError) -> Problem:
        return cls(kind, what, str(error), _hint(error))


class Plan:
    def __init__(
        self,
        items: Iterable[Item] = (),
        catalogs: Iterable[CatalogTarget] = (),
        problems: list[Problem] | None = None,
        signatures: Mapping[str, str] | None = None,
    ) -> None:
        self._items: dict[Item, None] = {}
        self._places: dict[tuple[str, str], str] = {}
        for item in items:
            self.add(item)
        self.catalogs = list(catalogs)
        self.problems = [] if problems is None else problems
        # Detached signatures of releases, by digest.
        self.signatures = dict(signatures or {})

    @property
    def items(self) -> list[Item]:
        return list(self._items)

    def add(self, item: Item) -> None:
        """Two images that would get the same tag are told apart by their digests."""
        place = (item.repository, item.tag)
        if self._places.setdefault(place, item.digest) != item.digest:
            item = replace(item, tag=digest_tag(item.digest))
            self._places[item.repository, item.tag] = item.digest
        self._items.setdefault(item)

    @property
    def exit_code(self) -> int:
        code = 0
        for problem in self.problems:
            code |= EXIT_BITS[problem.kind]
        return code

    def to_dict(self) -> dict[str, Any]:
        return {
            "items": [asdict(item) for item in self.items],
            "catalogs": [asdict(catalog) for catalog in self.catalogs],
            "signatures": self.signatures,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        return cls(
            [Item(**item) for item in data["items"]],
            [CatalogTarget(**catalog) for catalog in data["catalogs"]],
            [],
            dict(data.get("signatures") or {}),
        )


def _hint(error: HcpError) -> str:
    """What to do about it, with the flags of these commands instead of those of clusters."""
    if isinstance(error, ImageUnauthorized):
        return "log in there (podman login, docker login), or name a file with a login with --authfile"
    if isinstance(error, RegistryUntrusted):
        return "give the CA that signed it as a PEM file with --ca"
    if isinstance(error, UnknownImage):
        return "correct its name in the image set configuration or take it out; the rest is mirrored"
    return error.hint or ""


def tag_for(ref: Reference, digest: str) -> str:
    """A tag in the target: the source's, else one made of the digest, so that registries keep the image."""
    return ref.tag or (digest_tag(digest) if ref.digest else DEFAULT_TAG)


def digest_tag(digest: str) -> str:
    return digest.replace(":", "-")


def release_tag(version: str, architecture: str, component: str = "") -> str:
    tag = f"{version.replace('+', '_')}-{MACHINES.get(architecture, architecture)}"
    return f"{tag}-{component}" if component else tag


class Blocked:
    """Images that are never mirrored: by name, with or without tag or digest, or by a pattern."""

    def __init__(self, names: Iterable[str]) -> None:
        self._exact = set()
        self._patterns = []
        for name in names:
            try:
                self._exact.add(str(Reference.parse(name)))
            except HcpError:
                try:
                    self._patterns.append(re.compile(name))
                except re.error as error:
                    raise HcpError(
                        f'"{name}" in blockedImages is neither an image nor a pattern',
                        cause=str(error),
                        hint="write registry.example.com/path/name, with a tag or digest if only that is meant",
                    ) from error

    def has(self, ref: Reference) -> bool:
        forms = {ref.name, str(ref), f"{ref.name}:{ref.tag}", f"{ref.name}@{ref.digest}"}
        return bool(forms & self._exact) or any(p.search(form) for p in self._patterns for form in (str(ref),))


def nested(repository: str, most: int) -> str:
    """A path of at most so many parts: what is too deep is joined with dashes. 0 is no limit."""
    parts = repository.split("/")
    if not most or len(parts) <= most:
        return repository
    return "/".join([*parts[: most - 1], "-".join(parts[most - 1 :])])
