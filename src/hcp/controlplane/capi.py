"""What Cluster API needs to know of a hosted cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hcp.api import names
from hcp.controlplane.meta import obj
from hcp.controlplane.params import Manifest, Params

MANAGED_BY = "cluster.x-k8s.io/managed-by"


def _unowned(p: Params) -> Params:
    """Cluster API makes itself the owner of these objects, and gives up on one that has another controller."""
    return replace(p, owner=None)


def bindings(p: Params) -> list[Manifest]:
    """What the two managers may do in this namespace, and in no other that is not a hosted one."""
    managers = (names.CAPI_CORE, names.CAPI_PROVIDER)
    return [_binding(p, account, names.hosted_role(account), [account]) for account in managers]


def secret_followers(p: Params, accounts: Iterable[str]) -> Manifest:
    """Which of the two follow the Secrets of this namespace: official builds do, ours ask for them one by one."""
    return _binding(p, names.SECRET_FOLLOWERS, names.SECRET_FOLLOWERS, accounts)


def _binding(p: Params, name: str, role: str, accounts: Iterable[str]) -> Manifest:
    group = "rbac.authorization.k8s.io"
    content: Manifest = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role}}
    subjects = [{"kind": "ServiceAccount", "name": one, "namespace": names.OPERATOR_NAMESPACE} for one in accounts]
    return obj(p, f"{group}/v1", "RoleBinding", name, content | ({"subjects": subjects} if subjects else {}))


def cluster(p: Params, *, paused: bool = False) -> Manifest:
    """The Cluster. Its control plane is the HostedControlPlane, which we report initialized."""
    infrastructure = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "KubevirtCluster",
        "name": p.infra_id,
        "namespace": p.namespace,
    }
    control_plane = {
        "apiVersion": names.API_VERSION,
        "kind": "HostedControlPlane",
        "name": p.name,
        "namespace": p.namespace,
    }
    spec = {"paused": paused, "controlPlaneRef": control_plane, "infrastructureRef": infrastructure}
    return obj(
        _unowned(p),
        "cluster.x-k8s.io/v1beta1",
        "Cluster",
        p.infra_id,
        {"spec": spec},
        annotations={names.ANNOTATION_CLUSTER: p.key},
    )


def infra_secret(namespace: str) -> Manifest:
    """Where the provider finds the kubeconfig of an external infra cluster."""
    return {"apiVersion": "v1", "kind": "Secret", "name": names.INFRA_CREDENTIALS, "namespace": namespace}


def kubevirt_cluster(p: Params, *, credentials: bool = False) -> Manifest:
    """The infrastructure side; network and load balancer are ours, so the provider must not make its own."""
    spec: Manifest = {}
    if p.api_endpoint:
        spec["controlPlaneEndpoint"] = {"host": p.api_endpoint.host, "port": p.api_endpoint.port}
    if credentials:
        spec["infraClusterSecretRef"] = infra_secret(p.namespace)
    annotations = {names.ANNOTATION_CLUSTER: p.key, MANAGED_BY: "external"}
    return obj(
        _unowned(p),
        "infrastructure.cluster.x-k8s.io/v1alpha1",
        "KubevirtCluster",
        p.infra_id,
        {"spec": spec},
        labels={names.LABEL_CAPI_CLUSTER_NAME: p.infra_id},
        annotations=annotations,
    )
