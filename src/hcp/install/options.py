"""What an installation may be told, checked once: everything after it can rely on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hcp import __version__
from hcp.api.names import BUILD_REGISTRY, OPERATOR_NAMESPACE, SUPPORTED_KUBERNETES, subdomain_problem
from hcp.controlplane import quota
from hcp.errors import HcpError
from hcp.runtime.shards import shards_problem

# Where embedded clusters keep the operator's image; every build moves the tag.
DEFAULT_IMAGE = f"{BUILD_REGISTRY}/hcp/hcp:{__version__}"
PULL_POLICIES = ("Always", "Never", "IfNotPresent")
_REGISTRY = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII)
_PLACE = re.compile(rf"{_REGISTRY.pattern}(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII)
MONITORING = ("None", "OperatorOnly", "All")


def usual_pull_policy(image: str) -> str:
    """What fits a reference when the user chose nothing: a tag that moves is asked for again at every start."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    moves = not digest and (tag in ("", "latest") or image == DEFAULT_IMAGE)
    return "Always" if moves else "IfNotPresent"


@dataclass(frozen=True, slots=True)
class Options:
    """How the operator is installed."""

    image: str = DEFAULT_IMAGE
    pull_policy: str = "IfNotPresent"
    replicas: int = 1
    # Parts that the operator's pods share hosted clusters in; 1: one pod leads and has all of them.
    shards: int = 1
    version: str = __version__
    default_release: str = ""
    # The minors that users find released; all that the operator knows unless said otherwise.
    supported_versions: tuple[str, ...] = SUPPORTED_KUBERNETES
    pull_secret: bytes | None = None
    trust_bundle: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    monitoring: str = "None"
    admin_rbac: bool = False
    router: bool = False
    router_domain: str = ""
    # Privileges that everybody who may write HostedClusters has.
    allowed_privileges: tuple[str, ...] = ()
    # Whether the API server can guard the others (Kubernetes 1.30 and newer).
    policies: bool = True
    router_foreign_wildcards: bool = False
    # Registries that users may name although they are inside the cluster, and those without TLS.
    internal_registries: tuple[str, ...] = ()
    insecure_registries: tuple[str, ...] = ()
    # Where the images of releases are: `source=mirror`.
    registry_overrides: tuple[str, ...] = ()
    hosted_quota: Mapping[str, str] = field(default_factory=dict)
    # Where the router takes connections whose host is named in front of them; only ours does.
    named_route_port: int = 0
    namespace: str = OPERATOR_NAMESPACE

    def __post_init__(self) -> None:
        if self.namespace != OPERATOR_NAMESPACE:
            raise HcpError(
                f"the operator cannot be installed into namespace {self.namespace!r}",
                cause="network policies of hosted clusters and the command line name its namespace",
                hint=f"leave --namespace at {OPERATOR_NAMESPACE}",
            )
        if self.pull_policy not in PULL_POLICIES:
            raise HcpError(f"image pull policy {self.pull_policy!r} is not one of {', '.join(PULL_POLICIES)}")
        if wrong_number := shards_problem(self.shards):
            raise HcpError(f"--shards {self.shards} is not possible", hint=wrong_number)
        for flag, image in (("image", self.image), ("default-release-image", self.default_release or "none")):
            if not image or any(char.isspace() or not char.isprintable() for char in image):
                raise HcpError(
                    f"{image!r} given with --{flag} is not an image reference",
                    hint="it looks like registry.example.com/repository:tag or …@sha256:…",
                )
        wrong = quota.problem(self.hosted_quota)
        if wrong:
            raise HcpError(
                f"--hosted-quota is not understood: {wrong}", hint="it looks like pods=300,loadbalancers=50,claims=none"
            )
        for flag, found in (("internal", self.internal_registries), ("insecure", self.insecure_registries)):
            for registry in found:
                if not _REGISTRY.fullmatch(registry):
                    raise HcpError(
                        f"{registry!r} given with --{flag}-registries is not a registry",
                        hint="it looks like registry.example.com or registry.example.com:5000",
                    )
        for text in self.registry_overrides:
            source, equals, mirror = text.partition("=")
            if not equals or not (_PLACE.fullmatch(source) and _PLACE.fullmatch(mirror)):
                raise HcpError(
                    f"{text!r} given with --registry-overrides is not source=mirror",
                    hint="it looks like quay.example.com/team=mirror.example.com:5000/other; without tag or digest",
                )
        problem = subdomain_problem(self.router_domain) if self.router_domain else None
        if problem:
            raise HcpError(
                f"{self.router_domain!r} given with --router-domain is not a domain",
                cause=f"it {problem}",
                hint="it looks like apps.example.com",
            )
