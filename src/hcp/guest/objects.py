"""Helpers for objects inside the guest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hcp.api.names import LABEL_MANAGED_BY, MANAGED_BY
from hcp.controlplane.meta import digest
from hcp.controlplane.params import Params
from hcp.guest.catalogs import GuestCatalogs
from hcp.guest.ingress_plan import GuestIngress
from hcp.guest.login_plan import GuestLogin
from hcp.guest.monitoring.plan import GuestMonitoring
from hcp.guest.policy_stage import Stage
from hcp.guest.storage import GuestStorage

Manifest = dict[str, Any]
SYSTEM = "kube-system"
LABELS = {LABEL_MANAGED_BY: MANAGED_BY}
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class GuestParams:
    """The control plane's params, and what only the guest's parts need."""

    control_plane: Params
    images: Mapping[str, str]
    own_network: bool
    highly_available: bool
    konnectivity_ca: bytes = b""
    konnectivity_cert: bytes = b""
    konnectivity_key: bytes = b""
    # Whom to believe to be the API, and whether that ever changed: pods read it once, when they start.
    root_bundle: bytes = b""
    root_changed: bool = False
    # Whether nodes have to be given that, and whom their kubelets let in.
    node_trust: bool = False
    kubelet_client_ca: bytes = b""
    # None in a cluster without volumes of its infra cluster.
    storage: GuestStorage | None = None
    # None in a cluster whose release has no OLM.
    catalogs: GuestCatalogs | None = None
    # None in a cluster without nodes, or without the capability.
    ingress: GuestIngress | None = None
    # None in a cluster where nobody logs in.
    login: GuestLogin | None = None
    # None in a cluster without nodes, or whose release has nothing that measures.
    monitoring: GuestMonitoring | None = None
    # Whether a pool follows the load, and something follows it there.
    autoscaling: bool = False
    # Found by whoever looks into the guest: nothing of it is there before the first NetworkPolicy.
    policies: Stage = Stage.OFF

    @property
    def trust_mark(self) -> dict[str, str]:
        """An annotation that starts pods anew when there is another API authority."""
        return {"hcp/trust": digest(self.root_bundle.decode())} if self.root_changed else {}

    @property
    def api_address(self) -> tuple[str, int]:
        """Where a pod on the node's network reaches the API without a service proxy: the node's own HAProxy."""
        return self.control_plane.advertise_address, self.control_plane.api_port


def obj(
    api_version: str, kind: str, name: str, body: Mapping[str, Any], ns: str = "", labels: Mapping[str, str] = {}
) -> Manifest:
    metadata: Manifest = {"name": name, "labels": {**LABELS, **labels}}
    if ns:
        metadata["namespace"] = ns
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def service_account(name: str) -> Manifest:
    return obj("v1", "ServiceAccount", name, {}, SYSTEM)


def cluster_role(name: str, rules: Sequence[Mapping[str, Any]]) -> Manifest:
    return obj(f"{RBAC}/v1", "ClusterRole", name, {"rules": [dict(r) for r in rules]})


def cluster_role_binding(name: str, role: str, *subjects: Mapping[str, Any]) -> Manifest:
    body = {
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [dict(s) for s in subjects],
    }
    return obj(f"{RBAC}/v1", "ClusterRoleBinding", name, body)


def account(name: str) -> Manifest:
    return {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM}


def user(name: str) -> Manifest:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def config_map(name: str, data: Mapping[str, str]) -> Manifest:
    return obj("v1", "ConfigMap", name, {"data": dict(data)}, SYSTEM)


def host_path(name: str, path: str, kind: str = "DirectoryOrCreate") -> Manifest:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def done_once(name: str, image: str, work: Mapping[str, Any], pod: Mapping[str, Any]) -> Manifest:
    """A pod whose init container does the work: it is ready when the work is done on its node, and then only rests."""
    common = {"image": image, "imagePullPolicy": "IfNotPresent"}
    rest = {
        "name": "done",
        **common,
        "command": ["sleep", "2147483647"],
        "resources": {"requests": {"cpu": "1m", "memory": "4Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
        },
    }
    return {
        "serviceAccountName": name,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "initContainers": [{**common, **work}],
        "containers": [rest],
        **pod,
    }


def daemon_set(name: str, pod: Mapping[str, Any], annotations: Mapping[str, str], unavailable: str = "10%") -> Manifest:
    """On every node, whatever its taints."""
    labels = {"k8s-app": name}
    template: Manifest = {
        "metadata": {"labels": labels, "annotations": dict(annotations)},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            **pod,
        },
    }
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": unavailable}},
        "template": template,
    }
    return obj("apps/v1", "DaemonSet", name, {"spec": spec}, SYSTEM, labels)
