"""What the autoscaler of node pools may do inside the guest: look at what waits, empty nodes, say why not."""

from __future__ import annotations

from hcp.controlplane.autoscaler import GUEST_USER
from hcp.guest.objects import RBAC, SYSTEM, GuestParams, Manifest, cluster_role, cluster_role_binding, obj, user
from hcp.kube import Client
from hcp.kube.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES

NAME = "hcp:cluster-autoscaler"
_READ = ["get", "list", "watch"]


def objects(g: GuestParams) -> list[Manifest]:
    """Nothing in a cluster whose pools all have a size of their own."""
    if not g.autoscaling:
        return []
    settings = {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(_READ)}
    bound = {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME}, "subjects": [user(GUEST_USER)]}
    return [
        cluster_role(NAME, rules()),
        cluster_role_binding(NAME, NAME, user(GUEST_USER)),
        # Priorities of pools, which whoever owns the cluster may write down there.
        obj(f"{RBAC}/v1", "Role", NAME, {"rules": [settings]}, SYSTEM),
        obj(f"{RBAC}/v1", "RoleBinding", NAME, bound, SYSTEM),
    ]


def rules() -> list[Manifest]:
    """What a scheduler reads, besides: it plays one for nodes that are not there. No Secrets."""
    return [
        _rule("", "nodes", [*_READ, "update", "patch"]),
        _rule("", "pods", _READ),
        _rule("", "pods/eviction", ["create"]),
        _rule("", "events", ["create", "update", "patch"]),
        _rule("", "namespaces services replicationcontrollers persistentvolumeclaims persistentvolumes", _READ),
        _rule("apps", "daemonsets replicasets statefulsets", _READ),
        _rule("batch", "jobs cronjobs", _READ),
        _rule("policy", "poddisruptionbudgets", _READ),
        _rule("storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities volumeattachments", _READ),
        _rule("resource.k8s.io", "resourceclaims resourceslices deviceclasses", _READ),
    ]


async def remove(client: Client) -> None:
    """With the last pool that followed the load its rights go; one question where there were none."""
    if await client.get_or_none(CLUSTERROLES, NAME) is None:
        return
    for kind, ns in ((ROLEBINDINGS, SYSTEM), (ROLES, SYSTEM), (CLUSTERROLEBINDINGS, None), (CLUSTERROLES, None)):
        await client.delete(kind, NAME, ns, missing_ok=True)


def _rule(group: str, resources: str, verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}
