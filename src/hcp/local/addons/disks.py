"""Storage that can do more than folders (`hcp local up --with storage`): shared, block, growing, snapshots, clones.

Our own driver on the node's btrfs, in one pod with the sidecars of the Kubernetes project. There is one of each, so
none of them elects a leader, and nothing is written while nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping

from hcp.api.manifests import (
    READ,
    Object,
    account,
    cluster_binding,
    cluster_role,
    container_security,
    rule,
    service_account,
)
from hcp.csi.local.names import CLASS, DRIVER, POOL, SNAPSHOT_CLASS
from hcp.local.addons.objects import namespace, workload
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL, WORKER_LABEL

NAMESPACE = "hcp-storage"
SNAPSHOTS = "snapshot.storage.k8s.io"
IMAGES = (
    "image-csi-external-provisioner",
    "image-csi-external-resizer",
    "image-csi-external-snapshotter",
    "image-csi-snapshot-controller",
    "image-router",
)
DEFINITIONS = "snapshot-definitions"
_NAME = "local-storage"
_KUBELET = "/var/lib/kubelet"
_SOCKETS = f"{_KUBELET}/plugins/{DRIVER}"
_EVENTS = rule("", "events", ["create", "get", "list", "watch", "patch", "update"])
# They hold little and are asked seldom: memory is worth more than time here.
_SMALL = [
    {"name": "GOGC", "value": "40"},
    {"name": "GOMEMLIMIT", "value": "32MiB"},
    {"name": "GOMAXPROCS", "value": "1"},
]


def objects(images: Mapping[str, str], *, several: bool = False) -> list[Object]:
    """`several`: the cluster has nodes besides the first."""
    return [
        namespace(NAMESPACE, {"pod-security.kubernetes.io/enforce": "privileged"}),
        *_driver(images),
        *([_on_joined_nodes(images["router"])] if several else []),
        *_snapshot_controller(images["csi-snapshot-controller"]),
        _class(),
        _snapshot_class(),
    ]


def _class() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
        "allowVolumeExpansion": True,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    }


def _snapshot_class() -> Object:
    return {
        "apiVersion": f"{SNAPSHOTS}/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {
            "name": SNAPSHOT_CLASS,
            "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"},
        },
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    }


def profile() -> Object:
    """What CDI may do with the class: it does not know our driver."""
    kinds = [("ReadWriteMany", "Filesystem"), ("ReadWriteMany", "Block"), ("ReadWriteOnce", "Filesystem")]
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "StorageProfile",
        "metadata": {"name": CLASS},
        "spec": {
            "claimPropertySets": [{"accessModes": [mode], "volumeMode": volume} for mode, volume in kinds],
            "cloneStrategy": "csi-clone",
            "snapshotClass": SNAPSHOT_CLASS,
        },
    }


def _driver(images: Mapping[str, str]) -> list[Object]:
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVER},
            # All nodes have the same file system: nothing has to be attached.
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": False,
                "fsGroupPolicy": "File",
                "volumeLifecycleModes": ["Persistent"],
            },
        },
        service_account(_NAME, NAMESPACE),
        cluster_role(f"hcp-local:{_NAME}", _driver_rules()),
        cluster_binding(f"hcp-local:{_NAME}", account(_NAME, NAMESPACE)),
        workload(
            "Deployment",
            _NAME,
            NAMESPACE,
            {"app": _NAME},
            {
                **_pod(_NAME),
                # Beside the control plane, where it stays when other nodes go.
                "nodeSelector": {CONTROL_PLANE_LABEL: ""},
                "containers": [
                    _driver_container(images["router"]),
                    *(_sidecar(name, images[component], more) for component, name, more in _SIDECARS),
                ],
            },
            strategy={"type": "Recreate"},
        ),
    ]


def _on_joined_nodes(image: str) -> Object:
    """They have the same volumes: there the driver only mounts."""
    pod = {
        **_pod(_NAME),
        "automountServiceAccountToken": False,
        "nodeSelector": {WORKER_LABEL: ""},
        "containers": [_driver_container(image)],
    }
    return workload("DaemonSet", f"{_NAME}-node", NAMESPACE, {"app": f"{_NAME}-node"}, pod)


def _pod(account_name: str) -> Object:
    return {
        "serviceAccountName": account_name,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "volumes": [
            _host("kubelet", _KUBELET),
            _host("sockets", _SOCKETS, "DirectoryOrCreate"),
            _host("pool", POOL),
            _host("dev", "/dev"),
        ],
    }


def _driver_rules() -> list[Object]:
    """What the three sidecars do: follow claims and snapshots, write volumes, say in a claim how big it became."""
    return [
        rule("", "persistentvolumes", [*READ, "create", "patch", "update", "delete"]),
        rule("", "persistentvolumeclaims", [*READ, "update", "patch"]),
        rule("", "persistentvolumeclaims/status", ["update", "patch"]),
        rule("", "nodes pods", READ),
        _EVENTS,
        rule("storage.k8s.io", "storageclasses csinodes volumeattachments", READ),
        rule(SNAPSHOTS, "volumesnapshots volumesnapshotclasses", READ),
        rule(SNAPSHOTS, "volumesnapshotcontents", [*READ, "update", "patch"]),
        rule(SNAPSHOTS, "volumesnapshotcontents/status", ["update", "patch"]),
    ]


def _driver_container(image: str) -> Object:
    return {
        "name": "driver",
        "image": image,
        "command": ["hcp", "csi", "local", "--node=$(NODE_NAME)"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        # It mounts for others, which only a privileged container can.
        "securityContext": {"runAsUser": 0, "runAsGroup": 0, "privileged": True},
        "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
        "volumeMounts": [
            {"name": "kubelet", "mountPath": _KUBELET, "mountPropagation": "Bidirectional"},
            {"name": "pool", "mountPath": POOL},
            {"name": "dev", "mountPath": "/dev"},
        ],
    }


_SIDECARS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("csi-external-provisioner", "provisioner", ("--extra-create-metadata", "--feature-gates=Topology=false")),
    ("csi-external-resizer", "resizer", ("--handle-volume-inuse-error=false",)),
    ("csi-external-snapshotter", "snapshotter", ("--extra-create-metadata",)),
)


def _sidecar(name: str, image: str, more: tuple[str, ...]) -> Object:
    # The socket is root's; without any capability root is nobody in particular.
    return {
        "name": name,
        "image": image,
        "args": ["--csi-address=/csi/csi.sock", "--timeout=60s", *more],
        "env": _SMALL,
        "securityContext": {**container_security(), "runAsUser": 0, "runAsNonRoot": False},
        "resources": {"requests": {"cpu": "10m", "memory": "25Mi"}},
        "volumeMounts": [{"name": "sockets", "mountPath": "/csi"}],
    }


def _host(name: str, path: str, kind: str = "Directory") -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _snapshot_controller(image: str) -> list[Object]:
    name = "snapshot-controller"
    rules = [
        rule("", "persistentvolumes nodes", READ),
        rule("", "persistentvolumeclaims", [*READ, "update"]),
        _EVENTS,
        rule(SNAPSHOTS, "volumesnapshotclasses", READ),
        rule(SNAPSHOTS, "volumesnapshots volumesnapshotcontents", [*READ, "create", "update", "patch", "delete"]),
        rule(SNAPSHOTS, "volumesnapshots/status volumesnapshotcontents/status", ["update", "patch"]),
    ]
    container = {
        "name": name,
        "image": image,
        "env": _SMALL,
        "securityContext": container_security(),
        "resources": {"requests": {"cpu": "10m", "memory": "25Mi"}},
    }
    pod: Object = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {CONTROL_PLANE_LABEL: ""},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return [
        service_account(name, NAMESPACE),
        cluster_role(f"hcp-local:{name}", rules),
        cluster_binding(f"hcp-local:{name}", account(name, NAMESPACE)),
        workload("Deployment", name, NAMESPACE, {"app": name}, pod),
    ]
