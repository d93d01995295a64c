"""The login of the cluster for pods that are not ours: CDI imports boot disks in pods that run as `default`."""

from __future__ import annotations

from hcp.api import names
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import SERVICEACCOUNTS

ACCOUNT, SECRET = "default", "pull-secret"


async def run(scope: Scope) -> Learned:
    """Only where machines run beside the control plane. What others put into the list stays."""
    kubevirt = (scope.spec.get("platform") or {}).get("kubevirt")
    if kubevirt is None or kubevirt.get("credentials"):
        return Learned()
    # It has our label, and is followed, from the first write on.
    live = scope.cache.get(SERVICEACCOUNTS, ACCOUNT, scope.namespace)
    if live is None:
        live = await scope.cache.client.get_or_none(SERVICEACCOUNTS, ACCOUNT, scope.namespace)
    listed = (live or {}).get("imagePullSecrets") or []
    if live is None or any(one.get("name") == SECRET for one in listed):
        return Learned()
    body = {
        "metadata": {
            "resourceVersion": live["metadata"]["resourceVersion"],
            "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: scope.namespace},
        },
        "imagePullSecrets": [*listed, {"name": SECRET}],
    }
    try:
        made = await scope.cache.client.patch(SERVICEACCOUNTS, ACCOUNT, scope.namespace, body)
        scope.cache.informer(SERVICEACCOUNTS).observe(made)
    except (Conflict, NotFound):
        return Learned()  # Somebody was faster; the next pass looks again.
    return Learned()
