"""The pods of storage inside the guest, and the rights of who asks for it from outside."""

from __future__ import annotations

from hcp.controlplane.storage import GUEST_USER
from hcp.controlplane.storage_plan import SNAPSHOT_CONTROLLER
from hcp.csi.kubevirt.node import KNOWN_PORT
from hcp.guest import storage
from hcp.guest.monitoring.scraping import SNAPSHOT_PORT
from hcp.guest.objects import (
    SYSTEM,
    GuestParams,
    Manifest,
    account,
    cluster_role,
    cluster_role_binding,
    daemon_set,
    host_path,
    obj,
    service_account,
    user,
)

KUBELET = "/var/lib/kubelet"
_METRICS = 8080


def objects(g: GuestParams) -> list[Manifest]:
    """Nothing in a cluster without storage."""
    if g.storage is None:
        return []
    snapshots = bool(g.storage.plan.snapshot_classes)
    found = [
        cluster_role("hcp:kubevirt-csi-controller", storage.controller_rules(snapshots=snapshots)),
        cluster_role_binding("hcp:kubevirt-csi-controller", "hcp:kubevirt-csi-controller", user(GUEST_USER)),
        storage.csi_driver(),
        {**service_account(storage.NODE), "automountServiceAccountToken": False},
        _node(g, g.storage.driver_image),
    ]
    if snapshots:
        found += [*g.storage.definitions, *_snapshot_controller(g)]
    return [*found, *storage.classes(g.storage)]


def _node(g: GuestParams, image: str) -> Manifest:
    """The driver on every node: it mounts disks, so it is as mighty there as the kubelet, and has nothing else.

    It sees the node's processes because it runs the node's own programs for file systems.
    """
    container = {
        "name": "csi-driver",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "hcp.csi.kubevirt", "node", "--node=$(NODE_NAME)"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "25m", "memory": "48Mi"}},
        # Ready is a node's driver once its kubelet knows it; nothing is asked after that.
        "startupProbe": {
            "tcpSocket": {"host": "127.0.0.1", "port": KNOWN_PORT},
            "periodSeconds": 2,
            "failureThreshold": 300,
            "timeoutSeconds": 5,
        },
        "securityContext": {"privileged": True, "runAsUser": 0, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "kubelet", "mountPath": KUBELET, "mountPropagation": "Bidirectional"},
            {"name": "dev", "mountPath": "/dev"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    pod = {
        "serviceAccountName": storage.NODE,
        "automountServiceAccountToken": False,
        "hostPID": True,
        "containers": [container],
        "volumes": [
            host_path("kubelet", KUBELET, "Directory"),
            host_path("dev", "/dev", "Directory"),
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    return daemon_set(storage.NODE, pod, {})


def _metrics(g: GuestParams) -> list[str]:
    """Only where somebody asks for them."""
    asked = g.monitoring is not None and g.monitoring.prometheus is not None
    return [f"--http-endpoint=:{_METRICS}"] if asked else []


def _snapshot_controller(g: GuestParams) -> list[Manifest]:
    name = storage.SNAPSHOTS
    container = {
        "name": name,
        "image": g.images[SNAPSHOT_CONTROLLER],
        "imagePullPolicy": "IfNotPresent",
        "command": ["snapshot-controller", "--leader-election=false", "--v=1", *_metrics(g)],
        "env": [{"name": "GOGC", "value": "50"}],
        "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if _metrics(g):
        container["ports"] = [{"name": SNAPSHOT_PORT, "containerPort": _METRICS, "protocol": "TCP"}]
    labels = {"k8s-app": name}
    pod = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "containers": [container],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        # Never two at a time: nobody elects a leader.
        "strategy": {"type": "Recreate"},
        "template": {"metadata": {"labels": labels, "annotations": g.trust_mark}, "spec": pod},
    }
    return [
        service_account(name),
        cluster_role(f"hcp:{name}", storage.snapshot_controller_rules()),
        cluster_role_binding(f"hcp:{name}", f"hcp:{name}", account(name)),
        obj("apps/v1", "Deployment", name, {"spec": spec}, SYSTEM, labels),
    ]
