"""What the cluster shall tell about itself from inside, handed to who keeps it true there."""

from __future__ import annotations

from typing import Any

from hcp.api.paths import at
from hcp.guest.platform.keeper import Wanted, fingerprint
from hcp.hostedcluster import cluster_operators
from hcp.hostedcluster.scope import Object, Scope

# Of the status: what is told inside.
TOLD = ("version", "controlPlaneEndpoint")
PREFIX = "ClusterVersion"


def tell(scope: Scope, after: Object) -> None:
    """Nothing while it is not known, or its API does not answer: what was told stays."""
    seen, release = scope.seen, scope.release
    kubeconfig = scope.made.get(("Secret", scope.ctx.guests.secret_name))
    if release is None or kubeconfig is None or seen.guest is None or seen.api_health != "" or seen.pause.paused:
        return
    if not release.config_definitions:
        return
    conditions = [one for one in after.get("conditions") or () if str(one["type"]).startswith(PREFIX)]
    told = {name: after[name] for name in TOLD if name in after} | {"conditions": conditions}
    meta = scope.cluster["metadata"]
    cluster = {"metadata": {"name": meta["name"], "uid": meta["uid"]}, "spec": scope.cluster["spec"]}
    scope.tools.platform.update(
        scope.params.key,
        Wanted(
            scope.namespace,
            kubeconfig,
            _wants_nodes(scope),
            cluster,
            told,
            cluster_operators.found(scope.cluster, seen),
            release.config_definitions,
            fingerprint(release.config_definitions),
        ),
    )


def _wants_nodes(scope: Scope) -> bool:
    if scope.seen.guest is not None and scope.seen.guest.nodes:
        return True
    return any(_asks(pool) for pool in scope.pools)


def _asks(pool: dict[str, Any]) -> bool:
    return bool(at(pool, "spec.replicas") or at(pool, "spec.autoScaling"))
