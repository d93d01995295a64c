"""What is remembered about one embedded cluster between commands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hcp.api.addresses import in_url
from hcp.errors import HcpError
from hcp.local.network.addresses import API_PORT, IPV4, Addresses
from hcp.local.state.layout import Layout

FORMAT = 2
PROFILES = ("api", "cluster", "kubevirt")
DEFAULT_PROFILE = "kubevirt"
DEFAULT_KUBERNETES = "1.36"
STORAGE = "storage"
OLM = "olm"
MIRRORS = "mirrors"
METALLB = "metallb"
EXTRAS = (STORAGE, OLM, MIRRORS, METALLB)


@dataclass(frozen=True)
class Spec:
    """One cluster: its profile, its number (addresses) or its ports (profile api), what is done and what is not."""

    name: str
    profile: str
    number: int | None = None
    api_port: int = API_PORT
    etcd_port: int = 2379
    etcd_peer_port: int = 2380
    created: float = field(default_factory=time.time)
    applied: dict[str, str] = field(default_factory=dict)
    """Step of `up` → digest of what it last finished, so that a second run knows there is nothing to do."""

    extras: list[str] = field(default_factory=list)
    """What was added to the profile: `storage`, `olm`, `mirrors`, `metallb`."""

    joined: list[int] = field(default_factory=list)
    """Numbers of the nodes after the first."""

    ip_family: str = IPV4
    """Of pods, Services and nodes: `ipv4`, `ipv6` or `dual`."""

    kubernetes: str = "1.36"
    """The minor that its processes are of. Clusters of before this was written down had this one."""

    @property
    def has_storage(self) -> bool:
        return STORAGE in self.extras

    @property
    def has_olm(self) -> bool:
        return OLM in self.extras

    @property
    def has_mirrors(self) -> bool:
        return MIRRORS in self.extras

    @property
    def has_metallb(self) -> bool:
        return METALLB in self.extras

    @property
    def has_node(self) -> bool:
        return self.profile != "api"

    @property
    def addresses(self) -> Addresses:
        if self.number is None:
            raise HcpError(f"Cluster '{self.name}' has no network of its own")
        return Addresses(self.number, self.ip_family)

    @property
    def api_host(self) -> str:
        return self.addresses.primary.node if self.has_node else "127.0.0.1"

    @property
    def server(self) -> str:
        return f"https://{in_url(self.api_host)}:{self.api_port}"

    @property
    def node_name(self) -> str:
        return f"hcp-{self.name}"

    def with_extras(self, extras: Iterable[str]) -> Spec:
        """What was added once stays."""
        return replace(self, extras=sorted({*self.extras, *extras}))

    def with_profile(self, profile: str) -> Spec:
        return replace(self, profile=profile)


def load(layout: Layout) -> Spec | None:
    """The remembered cluster, or nothing when there is none."""
    try:
        document = json.loads(layout.spec.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HcpError(
            f"The state of this cluster in {layout.spec} cannot be read",
            cause=str(error),
            hint=f"Remove it with: hcp local down --name {layout.root.name} --purge",
        ) from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise HcpError(
            f"The state folder {layout.root} was written by another version of hcp (format {found}, not {FORMAT})",
            hint=f"Use that version, or start anew: hcp local down --name {layout.root.name} --purge",
        )
    del document["format"]
    try:
        return Spec(**document)
    except TypeError as error:
        raise HcpError(
            f"The state of this cluster in {layout.spec} is damaged",
            cause=str(error),
            hint=f"Start anew: hcp local down --name {layout.root.name} --purge",
        ) from error


def save(layout: Layout, spec: Spec) -> None:
    write_file(layout.spec, json.dumps({"format": FORMAT, **asdict(spec)}, indent=1) + "\n")


def write_file(path: Path, content: str | bytes, mode: int = 0o600) -> bool:
    """Writes a file in one step, only when it would change. Says whether it did."""
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(data)
    temporary.rename(path)
    return True
