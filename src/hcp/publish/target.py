"""Where images are published: a registry, and a path in it below which each image has a repository."""

from __future__ import annotations

from dataclasses import dataclass

from hcp.errors import HcpError
from hcp.oci.reference import Reference

SCHEME = "docker://"
OPERATOR, RELEASE = "hcp", "release"


@dataclass(frozen=True, slots=True)
class Target:
    registry: str
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> Target:
        bare = text.removeprefix(SCHEME).rstrip("/")
        host = bare.partition("/")[0]
        cause = ""
        if "://" in bare:
            cause = f'only {SCHEME} is understood, not "{bare.partition("://")[0]}://"'
        elif not any(char in host for char in ".:[") and host != "localhost":
            cause = f'"{host}" names no registry'
        elif "@" in bare or (":" in bare.rpartition("/")[2] and "/" in bare):
            cause = "it has a tag or a digest; each image gets its own"
        if not cause:
            try:
                found = Reference.parse(f"{bare}/x/{RELEASE}")
                return cls(found.registry, found.repository.removesuffix(f"x/{RELEASE}").rstrip("/"))
            except HcpError as error:
                cause = error.cause or str(error)
        raise HcpError(
            f'"{text}" is no place to push to',
            cause=cause,
            hint=f"it looks like {SCHEME}registry.example.com/team/hcp; repositories {OPERATOR}, {RELEASE}, etcd and "
            "so on are made below it",
        )

    def repository(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    def reference(self, name: str, digest: str) -> str:
        """How pods name a published image."""
        return f"{self.registry}/{self.repository(name)}@{digest}"

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}" if self.path else self.registry
