"""One pass over one NodePool: what it was given, what the phases found out, and the status they draft."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from hcp.api.names import control_plane_namespace
from hcp.kubevirt.infra import Infra, InfraClients
from hcp.kubevirt.unmanaged import is_unmanaged
from hcp.nodepool.bootimage import BootImage
from hcp.nodepool.config import GeneratedConfig
from hcp.nodepool.watches import Watches
from hcp.runtime import Waiting, set_condition
from hcp.runtime.context import OperatorContext

Object = dict[str, Any]
# What the control plane makes on its way is looked for at this pace.
LOOK_AGAIN = 5.0


class ReleaseFacts(Protocol):
    """What a node pool needs to know of a release."""

    @property
    def version(self) -> str: ...
    @property
    def components(self) -> Mapping[str, str]: ...
    @property
    def boot_disk(self) -> str | None: ...


class ReleaseSource(Protocol):
    """Reads releases for a hosted cluster: with its pull secret, its mirrors and its trust."""

    async def __call__(self, cluster: Mapping[str, Any], image: str, /) -> ReleaseFacts: ...


@dataclass(frozen=True)
class Tools:
    """What all passes share."""

    ctx: OperatorContext
    watches: Watches
    infras: InfraClients
    releases: ReleaseSource
    # The nodes of the cluster in a hosted namespace; None while they are not known.
    nodes: Callable[[str], list[Object] | None]


@dataclass
class Scope:
    """One pass."""

    tools: Tools
    pool: Object
    cluster: Object
    conditions: list[Object] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    annotations: dict[str, str | None] = field(default_factory=dict)
    release: ReleaseFacts | None = None
    infra: Infra | None = None
    image: BootImage | None = None
    cache_name: str | None = None
    config: GeneratedConfig | None = None
    template: str = ""
    deployment: Object | None = None
    paused: bool = False

    def __post_init__(self) -> None:
        self.status = copy.deepcopy(self.pool.get("status") or {})
        self.conditions = list(self.status.get("conditions") or [])

    @property
    def ctx(self) -> OperatorContext:
        return self.tools.ctx

    @property
    def spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.pool.get("spec") or {}
        return found

    @property
    def cluster_spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.cluster.get("spec") or {}
        return found

    @property
    def platform(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self.spec.get("platform") or {}).get("kubevirt") or {}
        return found

    @property
    def unmanaged(self) -> bool:
        """Whether the machines are the user's own."""
        return is_unmanaged(self.pool)

    @property
    def name(self) -> str:
        return str(self.pool["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pool["metadata"]["namespace"])

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def hosted(self) -> str:
        """The hosted namespace."""
        return control_plane_namespace(self.namespace, self.cluster["metadata"]["name"])

    @property
    def infra_id(self) -> str:
        return str(self.cluster_spec.get("infraID") or "")

    @property
    def pool_annotations(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.pool["metadata"].get("annotations") or {}
        return found

    def known_release(self) -> ReleaseFacts:
        """The release; phases that come after its own may rely on it."""
        if self.release is None:
            raise Waiting("the release is not known yet", again=LOOK_AGAIN)
        return self.release

    def set(self, kind: str, status: bool | str, reason: str, message: str = "") -> None:
        """Draft a condition."""
        generation = self.pool["metadata"].get("generation")
        self.conditions = set_condition(self.conditions, kind, status, reason, message, generation)

    def drop(self, kind: str) -> None:
        """Take back a condition that is only shown while something is wrong."""
        self.conditions = [entry for entry in self.conditions if entry.get("type") != kind]

    def refuse(self, kind: str, reason: str, message: str) -> Waiting:
        """Draft a False condition; raise the result to keep later phases from acting on bad input."""
        self.set(kind, False, reason, message)
        return Waiting(message)
