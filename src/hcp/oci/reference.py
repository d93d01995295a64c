"""Image references: the one place that knows how `host:port/path:tag@digest` comes apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hcp.errors import HcpError

DEFAULT_REGISTRY = "docker.io"
DEFAULT_TAG = "latest"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?")


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an image is: registry, repository, and a tag, a digest or both. The digest decides when it is there."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read a reference as the usual tools do: no registry means docker.io, one path part means library/."""
        rest, at, digest = text.strip().partition("@")
        if at and not _DIGEST.fullmatch(digest):
            raise _bad(text, f'"{digest}" is no sha256 or sha512 digest')
        first, slash, path = rest.partition("/")
        if slash and (any(c in first for c in ".:[") or first == "localhost" or first != first.lower()):
            registry = first
        else:
            registry, path = DEFAULT_REGISTRY, rest
        repository, colon, tag = path.partition(":")
        if colon and not _TAG.fullmatch(tag):
            raise _bad(text, f'"{tag}" is no tag')
        if not _REGISTRY.fullmatch(registry):
            raise _bad(text, f'"{registry}" is no registry host')
        if registry in ("index.docker.io", "registry-1.docker.io"):
            registry = DEFAULT_REGISTRY
        if registry == DEFAULT_REGISTRY and repository and "/" not in repository:
            repository = f"library/{repository}"
        if not _REPOSITORY.fullmatch(repository):
            raise _bad(text, f'"{repository}" is no repository name (lower case letters, digits, ".", "_", "-", "/")')
        return cls(registry, repository, tag or None, digest or None)

    @property
    def name(self) -> str:
        """Registry and repository, without tag and digest."""
        return f"{self.registry}/{self.repository}"

    @property
    def version(self) -> str:
        """What to ask the registry for: the digest, else the tag."""
        return self.digest or self.tag or DEFAULT_TAG

    @property
    def host(self) -> str:
        """The host that really answers for this registry."""
        return "registry-1.docker.io" if self.registry == DEFAULT_REGISTRY else self.registry

    def with_digest(self, digest: str) -> Reference:
        """The same image pinned; the tag is dropped, since the digest alone decides."""
        return replace(self, tag=None, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}@{self.digest}" if self.digest else f"{self.name}{tag}"


def is_image(text: str) -> bool:
    """Whether somebody's text names an image."""
    try:
        Reference.parse(text)
    except HcpError:
        return False
    return True


def _bad(text: str, cause: str) -> HcpError:
    return HcpError(
        f'"{text}" is not an image reference',
        cause=cause,
        hint="Write it as registry.example.com/path/name:tag or registry.example.com/path/name@sha256:…",
    )
