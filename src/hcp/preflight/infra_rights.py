"""The rights a hosted cluster needs on an infra cluster: one table, for the manifests and for checking a kubeconfig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hcp.csi.kubevirt import rights as storage_rights

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
EVERY = (*READ, "create", "update", "patch", "delete", "deletecollection")
NAME = "hcp-infra"


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on some resources of one group, and what they are for."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    purpose: str
    # Without the others a hosted cluster works too, only something less.
    needed: bool = True


# In the namespace that holds the virtual machines.
NAMESPACED = (
    Right("kubevirt.io", ("virtualmachines", "virtualmachineinstances"), EVERY, "virtual machines"),
    Right("kubevirt.io", ("virtualmachines/finalizers",), ("update",), "objects owned by virtual machines"),
    Right("kubevirt.io", ("virtualmachineinstancemigrations",), EVERY, "moving machines between nodes", False),
    Right("cdi.kubevirt.io", ("datavolumes",), EVERY, "disks"),
    Right("cdi.kubevirt.io", ("datavolumes/source",), ("create",), "cloning disks of others", False),
    Right("", ("services",), EVERY, "load balancers and ingress of the guest"),
    Right("", ("secrets",), EVERY, "boot documents of virtual machines"),
    Right("", ("persistentvolumeclaims",), ("get",), "seeing disks"),
    Right("", ("persistentvolumeclaims",), ("list", "watch"), "following disks", False),
    Right("", ("pods",), READ, "seeing the pods behind virtual machines", False),
    Right("", ("events",), ("get", "list", "create", "update", "patch"), "saying what went wrong", False),
    Right("discovery.k8s.io", ("endpointslices", "endpointslices/restricted"), EVERY, "leading Services to nodes"),
    Right("networking.k8s.io", ("networkpolicies",), EVERY, "keeping virtual machines off the infra networks"),
    Right("route.openshift.io", ("routes", "routes/custom-host"), EVERY, "the guest's apps domain", False),
)
# In the same namespace, for volumes of the guest; the guide's Role has few of them.
STORAGE = tuple(Right(one.group, one.resources, one.verbs, one.purpose, False) for one in storage_rights.ALL)
# For the whole cluster, reading only.
CLUSTER = (
    Right("config.openshift.io", ("networks", "ingresses"), ("get",), "which networks to keep machines off"),
    Right("storage.k8s.io", ("storageclasses",), ("get", "list"), "checking storage classes"),
    Right("", ("nodes",), ("get", "list"), "which nodes to keep machines off", False),
)
# What only `doctor` looks at: whoever has not granted it is told so by the very check, and lacks nothing else.
LOOKING = (
    Right("kubevirt.io", ("kubevirts",), ("list",), "whether running machines take volumes", False),
    Right("snapshot.storage.k8s.io", ("volumesnapshotclasses",), ("list",), "checking snapshot classes", False),
)


def _rules(rights: tuple[Right, ...]) -> list[Object]:
    return [
        {"apiGroups": [right.group], "resources": list(right.resources), "verbs": list(right.verbs)} for right in rights
    ]


def subject(namespace: str, *, user: str = "", group: str = "") -> Object:
    """Who gets the rights: a user or group of the infra cluster, else a ServiceAccount of ours."""
    if user:
        return {"apiGroup": RBAC, "kind": "User", "name": user}
    if group:
        return {"apiGroup": RBAC, "kind": "Group", "name": group}
    return {"kind": "ServiceAccount", "name": NAME, "namespace": namespace}


def manifests(namespace: str, *, user: str = "", group: str = "", token: bool = False) -> list[Object]:
    """Everything the owner of an infra cluster has to apply."""
    who = subject(namespace, user=user, group=group)
    whole = f"{NAME}-{namespace}"
    found: list[Object] = []
    if who["kind"] == "ServiceAccount":
        found.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}})
        if token:
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {
                        "name": f"{NAME}-token",
                        "namespace": namespace,
                        "annotations": {"kubernetes.io/service-account.name": NAME},
                    },
                    "type": "kubernetes.io/service-account-token",
                }
            )
    found += [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": NAME, "namespace": namespace},
            "rules": _rules((*NAMESPACED, *STORAGE)),
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": NAME, "namespace": namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
            "subjects": [who],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": whole},
            "rules": _rules((*CLUSTER, *LOOKING)),
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": whole},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": whole},
            "subjects": [who],
        },
    ]
    return found
