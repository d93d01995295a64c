"""New certificate authorities on nodes: a DaemonSet that is there only while a bundle changes.

A kubelet reads whom it lets in again by itself, but the authority of the API only when it starts: so that file is
written and the kubelet restarted, which its pods do not notice. Nothing here is secret, and no node is replaced.
"""

from __future__ import annotations

import base64

from hcp.controlplane.meta import digest
from hcp.guest.objects import GuestParams, Manifest, config_map, daemon_set, done_once, host_path, service_account

NAME = "node-trust"
_SCRIPT = r"""
set -eu
if [ "$(cat /node/kubelet/node-trust 2>/dev/null)" = "$MARK" ]; then exit 0; fi
cp /trust/kubelet-ca.crt /node/kubernetes/kubelet-ca.crt.new
chmod 0644 /node/kubernetes/kubelet-ca.crt.new
mv /node/kubernetes/kubelet-ca.crt.new /node/kubernetes/kubelet-ca.crt
config=/node/kubelet/kubeconfig
sed "s|certificate-authority-data: .*|certificate-authority-data: $(cat /trust/api-ca)|" $config > $config.new
chmod 0600 $config.new
mv $config.new $config
sync
busybox nsenter -t 1 -m -- systemctl restart --no-block kubelet.service
echo "$MARK" > /node/kubelet/node-trust
"""


def objects(g: GuestParams) -> list[Manifest]:
    image = g.images.get("kube-proxy")
    if not g.node_trust or not image:
        return []
    data = {
        "kubelet-ca.crt": g.kubelet_client_ca.decode(),
        "api-ca": base64.b64encode(g.root_bundle).decode(),
        "script": _SCRIPT,
    }
    return [service_account(NAME), config_map(NAME, data), _daemon_set(image, digest(data))]


def _daemon_set(image: str, mark: str) -> Manifest:
    """Its pods are ready when their node trusts what `mark` stands for."""
    writer = {
        "name": "write",
        "command": ["sh", "/trust/script"],
        "env": [{"name": "MARK", "value": mark}],
        # To restart the kubelet it has to enter the node; kube-proxy has the same rights all the time.
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": "trust", "mountPath": "/trust", "readOnly": True},
            {"name": "kubernetes", "mountPath": "/node/kubernetes"},
            {"name": "kubelet", "mountPath": "/node/kubelet"},
        ],
    }
    pod = {
        "hostPID": True,
        "volumes": [
            {"name": "trust", "configMap": {"name": NAME}},
            host_path("kubernetes", "/etc/kubernetes", "Directory"),
            host_path("kubelet", "/var/lib/kubelet", "Directory"),
        ],
    }
    return daemon_set(NAME, done_once(NAME, image, writer, pod), {"hcp/config-hash": mark})
