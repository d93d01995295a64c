"""flannel: the release's own pod network."""

from __future__ import annotations

import json

from hcp.controlplane.meta import digest
from hcp.guest.objects import (
    GuestParams,
    Manifest,
    account,
    cluster_role,
    cluster_role_binding,
    config_map,
    daemon_set,
    host_path,
    service_account,
)

NAME = "kube-flannel"


def objects(g: GuestParams) -> list[Manifest]:
    image = g.images.get("flannel")
    if not image or not g.own_network:
        return []
    network = json.dumps(_network(g), indent=1, sort_keys=True)
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    return [
        service_account(NAME),
        cluster_role("hcp:flannel", rules),
        cluster_role_binding("hcp:flannel", "hcp:flannel", account(NAME)),
        config_map(NAME, {"net-conf.json": network}),
        _daemon_set(g, image, digest(network)),
    ]


def _network(g: GuestParams) -> Manifest:
    """VXLAN on a port of its own: the management cluster's network may be VXLAN too, on the usual one."""
    result: Manifest = {"Backend": {"Type": "vxlan", "Port": 9879}, "EnableNFTables": False}
    for cidr in g.control_plane.cluster_networks:
        if ":" in cidr:
            result |= {"IPv6Network": cidr, "EnableIPv6": True}
        else:
            result |= {"Network": cidr, "EnableIPv4": True}
    return result


def _daemon_set(g: GuestParams, image: str, config_hash: str) -> Manifest:
    host, port = g.api_address
    # The node's own part, the bridge that pods are plugged into, comes with its Ignition document.
    flanneld = {
        "name": "kube-flannel",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "flanneld",
            "--ip-masq",
            "--kube-subnet-mgr",
            "--net-config-path=/etc/kube-flannel/net-conf.json",
            "--iptables-resync=60",  # every 5 s is the default and costs an emulated CPU a tenth of its time
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            # The service network does not work before this runs, so the node's own proxy is asked.
            {"name": "KUBERNETES_SERVICE_HOST", "value": host},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(port)},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        "securityContext": {"privileged": False, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
        "volumeMounts": [
            {"name": "run", "mountPath": "/run/flannel"},
            {"name": "config", "mountPath": "/etc/kube-flannel", "readOnly": True},
            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
        ],
    }
    pod = {
        "serviceAccountName": NAME,
        "containers": [flanneld],
        "volumes": [
            host_path("run", "/run/flannel"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "config", "configMap": {"name": NAME}},
        ],
    }
    return daemon_set(NAME, pod, {"hcp/config-hash": config_hash, **g.trust_mark})
