"""local-path-provisioner: volumes are folders on the node, on btrfs each bounded by its claim (volumes.py).

Its class is the default one, unless the cluster has storage that can do more (disks.py).
"""

from __future__ import annotations

import json

from hcp.api.manifests import READ, Object, account, cluster_binding, cluster_role, config_map, rule, service_account
from hcp.local.addons.objects import namespace, workload
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL

NAMESPACE = "local-path-storage"
CLASS = "local-path"
PROVISIONER = "rancher.io/local-path"
FOLDER = "/var/lib/storage"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_SETUP = '#!/bin/sh\nset -eu\nmkdir -m 0777 -p "$VOL_DIR"\n'
_TEARDOWN = '#!/bin/sh\nset -eu\nrm -rf "$VOL_DIR"\n'


def objects(image: str, helper: str, *, default: bool = True) -> list[Object]:
    locks = rule("", "endpoints leases", ["get", "create", "patch", "update"])
    return [
        namespace(NAMESPACE),
        service_account("local-path-provisioner", NAMESPACE),
        cluster_role(
            "local-path-provisioner",
            [
                rule("", "nodes persistentvolumeclaims configmaps pods/log", READ),
                rule("", "persistentvolumes", ["get", "list", "watch", "create", "patch", "update", "delete"]),
                rule("", "pods", ["get", "list", "watch", "create", "patch", "update", "delete"]),
                rule("", "events", ["create", "patch"]),
                locks | {"apiGroups": ["", "coordination.k8s.io"]},
                rule("storage.k8s.io", "storageclasses", READ),
            ],
        ),
        cluster_binding("local-path-provisioner", account("local-path-provisioner", NAMESPACE)),
        config_map("local-path-config", NAMESPACE, _configuration(helper)),
        _deployment(image, helper),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": CLASS, "annotations": {_DEFAULT: str(default).lower()}},
            "provisioner": PROVISIONER,
            # On one node there is no place to choose: a volume is there before the pod that wants it, and neither the
            # scheduler nor importers wait for each other.
            "volumeBindingMode": "Immediate",
            "reclaimPolicy": "Delete",
        },
    ]


def _configuration(helper: str) -> dict[str, str]:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper-pod"},
        "spec": {
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "helper-pod", "image": helper, "imagePullPolicy": "IfNotPresent"}],
        },
    }
    # "Shared" by the one node there is: only then it provides volumes for which no node was chosen.
    return {
        "config.json": json.dumps({"sharedFileSystemPath": FOLDER}),
        "setup": _SETUP,
        "teardown": _TEARDOWN,
        "helperPod.yaml": json.dumps(pod),
    }


def _deployment(image: str, helper: str) -> Object:
    container: Object = {
        "name": "local-path-provisioner",
        "image": image,
        "args": [
            "start",
            "--config=/etc/config/config.json",
            f"--helper-image={helper}",
            f"--provisioner-name={PROVISIONER}",
            "--service-account-name=local-path-provisioner",
            "--worker-threads=8",
        ],
        # With the node's name and its folder it makes directories itself; a helper pod for each takes seconds.
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        # The bound of a volume is set by whoever administers the file system.
        "securityContext": {"runAsUser": 0, "runAsGroup": 0, "capabilities": {"add": ["SYS_ADMIN"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "30Mi"}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/config/", "readOnly": True},
            {"name": "volumes", "mountPath": FOLDER},
        ],
    }
    pod: Object = {
        "serviceAccountName": "local-path-provisioner",
        "priorityClassName": "system-cluster-critical",
        # Where it stays when other nodes go.
        "nodeSelector": {CONTROL_PLANE_LABEL: ""},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": "local-path-config"}},
            {"name": "volumes", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}},
        ],
    }
    return workload("Deployment", "local-path-provisioner", NAMESPACE, {"app": "local-path-provisioner"}, pod)
