"""What a pass knows about what measures inside its cluster: which halves of it, and their certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api.capabilities import MONITORING
from hcp.api.paths import at
from hcp.controlplane import rotation
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.meta import secret_data
from hcp.guest.monitoring import manifests, metrics_server, web
from hcp.guest.monitoring.plan import METRICS_IMAGE, NAMESPACE, NEEDED, GuestMonitoring, Pair
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import SECRETS
from hcp.pki import Leaf

METRICS_LEAF, PROMETHEUS_LEAF = "metrics-server-crt", "monitoring-crt"


def prometheus_wanted(spec: Mapping[str, Any]) -> bool:
    return MONITORING not in (at(spec, "capabilities.disabled") or ())


def leaves(spec: Mapping[str, Any], images: Mapping[str, str]) -> list[LeafSecret]:
    """One for each half that the release has and the cluster wants: nothing of it runs without."""
    found = []
    if images.get(METRICS_IMAGE):
        host = f"{metrics_server.NAME}.{NAMESPACE}.svc"
        found.append(LeafSecret(METRICS_LEAF, "root-ca", Leaf(host, (), (host,), usage="server")))
    if prometheus_wanted(spec) and all(images.get(name) for name in NEEDED):
        # Who asks and who is asked have the same one.
        leaf = Leaf("prometheus-k8s", (), web.hosts(*manifests.NAMES), usage="both")
        found.append(LeafSecret(PROMETHEUS_LEAF, "root-ca", leaf))
    return found


def inside(scope: Scope) -> GuestMonitoring | None:
    """None before the first node, and where the release has nothing that measures."""
    pairs = {one.name: _pair(scope, one.name) for one in leaves(scope.spec, scope.params.images)}
    if not any(pairs.values()):
        return None
    return GuestMonitoring(
        rotation.joined(scope.authorities, ("cluster-signer-ca",)),
        scope.authorities["root-ca"].trusted,
        pairs.get(METRICS_LEAF),
        pairs.get(PROMETHEUS_LEAF),
    )


def _pair(scope: Scope, name: str) -> Pair | None:
    made = scope.made.get(("Secret", name)) or scope.cache.get(SECRETS, name, scope.namespace)
    if made is None:
        return None
    data = secret_data(made)
    return Pair(data["tls.crt"], data["tls.key"])
