"""The kubelet of a node: its configuration file, its unit, and how the node learns its own name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from hcp.ignition.document import Document, document, file, unit

DIRECTORY = "/etc/kubernetes"
CONFIG = f"{DIRECTORY}/kubelet.yaml"
BOOTSTRAP_KUBECONFIG = f"{DIRECTORY}/bootstrap-kubeconfig"
CLIENT_CA = f"{DIRECTORY}/kubelet-ca.crt"
STATIC_PODS = f"{DIRECTORY}/manifests"
NAME_FILE = "/run/node-name.env"

# The VM's name is the node's name: the KubeVirt provider looks the Node up by it. It is on the config drive as
# "hostname"; a minimal system may never take the name that DHCP offers.
_NAME_SCRIPT = """\
#!/bin/sh
set -eu
drive=$(mktemp -d)
mount -o ro /dev/disk/by-label/config-2 "$drive"
name=$(tr -d '\\n' < "$drive/openstack/latest/meta_data.json" | sed -n 's/.*"hostname" *: *"\\([^"]*\\)".*/\\1/p')
umount "$drive"
rmdir "$drive"
test -n "$name"
echo "$name" > /etc/hostname
echo "$name" > /proc/sys/kernel/hostname
echo "NODE_NAME=$name" > /run/node-name.env
"""

_NAME_UNIT = """\
[Unit]
Description=Take the node's name from the config drive
After=local-fs.target systemd-udev-settle.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/node-name
Restart=on-failure
RestartSec=1s

[Install]
WantedBy=multi-user.target
"""

_KUBELET_UNIT = f"""\
[Unit]
Description=Kubernetes kubelet
Requires=node-name.service node-prepare.service
After=network-online.target node-name.service node-prepare.service containerd.service
Wants=network-online.target containerd.service

[Service]
EnvironmentFile={NAME_FILE}
ExecStart=kubelet \\
  --config={CONFIG} \\
  --bootstrap-kubeconfig={BOOTSTRAP_KUBECONFIG} \\
  --kubeconfig=/var/lib/kubelet/kubeconfig \\
  --cert-dir=/var/lib/kubelet/pki \\
  --hostname-override=${{NODE_NAME}} \\
  --v=2
Restart=always
RestartSec=2
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""

_PREPARE_UNIT = """\
[Unit]
Description=Kernel modules, settings and trust for a Kubernetes node
After=local-fs.target
Before=containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-modprobe -a overlay br_netfilter vxlan
ExecStart=-sysctl --system
ExecStart=-update-ca-certificates

[Install]
WantedBy=multi-user.target
"""

_SYSCTL = """\
net.ipv4.ip_forward = 1
net.ipv6.conf.all.forwarding = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
fs.inotify.max_user_instances = 8192
fs.inotify.max_user_watches = 524288
vm.overcommit_memory = 1
kernel.panic = 10
kernel.panic_on_oops = 1
"""


def kubelet_configuration(
    cluster_dns: Sequence[str], cluster_domain: str = "cluster.local", changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The KubeletConfiguration; ``changes`` are a user's KubeletConfig fields and win over ours."""
    base: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True, "cacheTTL": "1m0s"},
            "x509": {"clientCAFile": CLIENT_CA},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": list(cluster_dns),
        "clusterDomain": cluster_domain,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "containerLogMaxSize": "50Mi",
        "maxPods": 250,
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "staticPodPath": STATIC_PODS,
        "tlsMinVersion": "VersionTLS12",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    }
    return _overlay(base, changes or {})


def kubelet_document(configuration: Mapping[str, Any], bootstrap_kubeconfig: str, client_ca: str) -> Document:
    """Everything that makes this machine a kubelet of one hosted cluster."""
    return document(
        files=[
            file(CONFIG, yaml.safe_dump(dict(configuration), sort_keys=True)),
            file(BOOTSTRAP_KUBECONFIG, bootstrap_kubeconfig, 0o600),
            file(CLIENT_CA, client_ca),
            file("/usr/local/bin/node-name", _NAME_SCRIPT, 0o755),
            file("/etc/sysctl.d/90-kubernetes.conf", _SYSCTL),
            file("/etc/modules-load.d/kubernetes.conf", "overlay\nbr_netfilter\nvxlan\n"),
        ],
        units=[
            unit("node-name.service", _NAME_UNIT),
            unit("node-prepare.service", _PREPARE_UNIT),
            unit("kubelet.service", _KUBELET_UNIT),
        ],
    )


def _overlay(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        known = result.get(key)
        result[key] = _overlay(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return result
