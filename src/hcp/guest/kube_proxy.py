"""kube-proxy on every node of the guest."""

from __future__ import annotations

import json

from hcp.api.addresses import in_url
from hcp.controlplane.meta import digest
from hcp.guest.objects import (
    GuestParams,
    Manifest,
    account,
    cluster_role_binding,
    config_map,
    daemon_set,
    host_path,
    service_account,
)

NAME = "kube-proxy"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"


def objects(g: GuestParams) -> list[Manifest]:
    image = g.images.get(NAME)
    if not image:
        return []
    data = _config(g)
    return [
        service_account(NAME),
        cluster_role_binding("hcp:kube-proxy", "system:node-proxier", account(NAME)),
        config_map(NAME, data),
        _daemon_set(g, image, digest(data)),
    ]


def _config(g: GuestParams) -> dict[str, str]:
    host, port = g.api_address
    server = f"https://{in_url(host)}:{port}"
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": {"server": server, "certificate-authority": f"{TOKEN}/ca.crt"}}],
        "users": [{"name": "default", "user": {"tokenFile": f"{TOKEN}/token"}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    }
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": "::" if ":" in host else "0.0.0.0",
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig"},
        "clusterCIDR": ",".join(g.control_plane.cluster_networks),
        "mode": "nftables",
        # Limits of the node stay the node's own.
        "conntrack": {"maxPerCore": 0},
    }
    return {
        "kubeconfig": json.dumps(kubeconfig, indent=1, sort_keys=True),
        "config.conf": json.dumps(config, indent=1, sort_keys=True),
    }


def _daemon_set(g: GuestParams, image: str, config_hash: str) -> Manifest:
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "kube-proxy",
            "--config=/var/lib/kube-proxy/config.conf",
            "--hostname-override=$(NODE_NAME)",
        ],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        "securityContext": {"privileged": True},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 10256, "scheme": "HTTP"}, "periodSeconds": 5},
        "volumeMounts": [
            {"name": "config", "mountPath": "/var/lib/kube-proxy"},
            {"name": "modules", "mountPath": "/lib/modules", "readOnly": True},
            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
        ],
    }
    pod = {
        "serviceAccountName": NAME,
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME}},
            host_path("modules", "/lib/modules", "Directory"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        ],
    }
    return daemon_set(NAME, pod, {"hcp/config-hash": config_hash, **g.trust_mark})
