"""One pass over one NodePool: what it was given, and what its phases have found out so far."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hcp.api.names import control_plane_namespace
from hcp.api.paths import annotations_of, at, block
from hcp.api.spec import is_unmanaged
from hcp.kubevirt.evacuation_plan import Plan
from hcp.kubevirt.infra import Infra, InfraClients
from hcp.nodepool.bootimage import BootImage
from hcp.nodepool.config import GeneratedConfig
from hcp.nodepool.observed import Observed
from hcp.nodepool.watches import Watches
from hcp.runtime.conditions import Verdict, is_true
from hcp.runtime.context import OperatorContext
from hcp.runtime.phases import Facts, Failed, Waiting

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
class HostedInputs:
    """Secrets and bundles of a hosted cluster that its nodes carry."""

    bootstrap_kubeconfig: str
    kubelet_client_ca: str
    pull_secret: str
    ssh_key: str
    trust_bundle: str
    registry_authorities: Mapping[str, str]
    proxy_authority: str = ""
    """CAs of the cluster's proxy."""


@dataclass(frozen=True)
class Tools:
    """What all passes share."""

    ctx: OperatorContext
    watches: Watches
    infras: InfraClients
    releases: ReleaseSource
    # The nodes of the cluster in a hosted namespace; None while they are not known.
    nodes: Callable[[str], list[Object] | None]
    # How far the machines of a pool are that have to leave their infra node, by name.
    leaving: Callable[[str], Mapping[str, Plan]]


@dataclass(frozen=True, kw_only=True)
class Learned(Facts):
    """What a phase of a NodePool found out."""

    # Condition → verdict; None takes it away.
    said: Mapping[str, Verdict | None] = field(default_factory=dict)
    # Other fields of `Observed`, for the status.
    seen: Mapping[str, Any] = field(default_factory=dict)
    # Annotations the pool shall have, for the next passes and for people.
    annotations: Mapping[str, str] = field(default_factory=dict)
    release: ReleaseFacts | None = None
    infra: Infra | None = None
    image: BootImage | None = None
    config: GeneratedConfig | None = None
    inputs: HostedInputs | None = None
    payload: bytes = b""
    template: str = ""


def refused(kind: str, reason: str, message: str) -> Waiting:
    """Raise it to keep later phases from acting on bad input; a change of that input brings the next pass."""
    return Waiting(message, facts=Learned(said={kind: (False, reason, message)}))


def failed(error: Exception, kind: str, reason: str, message: str) -> Failed:
    """Raise it for what is tried again and is said in a condition of its own too."""
    return Failed(error, Learned(said={kind: (False, reason, message)}))


@dataclass(frozen=True)
class Scope:
    """Read by phases, changed by none of them: the next step gets one that has learned."""

    tools: Tools
    pool: Object
    # None: there is no such hosted cluster.
    cluster: Object | None
    now: dt.datetime
    seen: Observed
    annotations: Mapping[str, str] = field(default_factory=dict)
    release: ReleaseFacts | None = None
    infra: Infra | None = None
    image: BootImage | None = None
    config: GeneratedConfig | None = None
    inputs: HostedInputs | None = None
    # The document machines get.
    payload: bytes = b""
    template: str = ""

    @property
    def ctx(self) -> OperatorContext:
        return self.tools.ctx

    @property
    def paused(self) -> bool:
        """Whether somebody asked us to leave the pool alone: it is looked at, and nothing is made."""
        return self.seen.pause.paused

    @property
    def unmanaged(self) -> bool:
        """Whether the machines are the user's own."""
        return is_unmanaged(self.pool)

    @property
    def spec(self) -> Mapping[str, Any]:
        return block(self.pool, "spec")

    @property
    def cluster_spec(self) -> Mapping[str, Any]:
        return block(self.cluster, "spec")

    @property
    def platform(self) -> Mapping[str, Any]:
        return block(self.pool, "spec.platform.kubevirt")

    @property
    def version(self) -> str:
        """The version that all machines of the pool had before this pass."""
        return str(at(self.pool, "status.version", ""))

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
        return control_plane_namespace(self.namespace, str(self.spec.get("clusterName") or ""))

    @property
    def infra_id(self) -> str:
        return str(self.cluster_spec.get("infraID") or "")

    @property
    def pool_annotations(self) -> Mapping[str, str]:
        return annotations_of(self.pool)

    def known_cluster(self) -> Object:
        """The hosted cluster; the first phase ends a pass without one."""
        if self.cluster is None:
            raise Waiting("the hosted cluster does not exist")
        return self.cluster

    def known_release(self) -> ReleaseFacts:
        """The release; phases that come after its own may rely on it."""
        if self.release is None:
            raise Waiting("the release is not known yet", again=LOOK_AGAIN)
        return self.release

    def says(self, kind: str) -> bool:
        """Whether a condition is True: by what this pass found, else by what the last one did."""
        verdict = self.seen.said.get(kind)
        return verdict[0] is True if verdict else is_true(at(self.pool, "status.conditions"), kind)


def learn(scope: Scope, facts: Learned) -> Scope:
    """The scope that knows these facts too."""
    return replace(
        scope,
        seen=replace(scope.seen, said={**scope.seen.said, **facts.said}, **facts.seen),
        annotations={**scope.annotations, **facts.annotations},
        release=facts.release or scope.release,
        infra=facts.infra or scope.infra,
        image=facts.image or scope.image,
        config=facts.config or scope.config,
        inputs=facts.inputs or scope.inputs,
        payload=facts.payload or scope.payload,
        template=facts.template or scope.template,
    )
