"""The kubelet of a node: its configuration file and its unit."""

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

# %H is the host name, which the disk took from the VM's config drive: node, machine and VM share one name, and the
# KubeVirt provider looks the Node up by it.
_KUBELET_UNIT = f"""\
[Unit]
Description=Kubernetes kubelet
After=network-online.target containerd.service
Wants=network-online.target containerd.service

[Service]
@ENVIRONMENT@ExecStart=kubelet \\
  --config={CONFIG}@ADDITIONS@ \\
  --bootstrap-kubeconfig={BOOTSTRAP_KUBECONFIG} \\
  --kubeconfig=/var/lib/kubelet/kubeconfig \\
  --cert-dir=/var/lib/kubelet/pki \\
  --hostname-override=%H \\
  --v=@VERBOSITY@@ADDRESSES@@LABELS@
Restart=always
RestartSec=1
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
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
        # A volume is mounted, and let go by its node, no sooner than the node's status says so. By default that is
        # looked at every ten seconds; looking is cheap and asks no API server, and only changes are written.
        "nodeStatusReportFrequency": "5m0s",
        "nodeStatusUpdateFrequency": "1s",
        "resolvConf": "/run/systemd/resolve/resolv.conf",
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "staticPodPath": STATIC_PODS,
        "tlsMinVersion": "VersionTLS12",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
    }
    return _overlay(base, changes or {})


def kubelet_document(
    configuration: Mapping[str, Any],
    bootstrap_kubeconfig: str,
    client_ca: str,
    labels: Mapping[str, str],
    verbosity: int = 0,
    addresses: str = "",
    additions: str = "",
) -> Document:
    """Everything that makes this machine a kubelet of one hosted cluster; `labels` its Node gets when it registers.

    `addresses`: a file that says, in `NODE_ADDRESSES`, which the node has. `additions`: a folder with what the node
    adds to the configuration by itself.
    """
    told = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    text = _KUBELET_UNIT.replace("@VERBOSITY@", str(verbosity or 2))
    text = text.replace("@LABELS@", f" \\\n  --node-labels={told}" if told else "")
    text = text.replace("@ADDITIONS@", f" \\\n  --config-dir={additions}" if additions else "")
    text = text.replace("@ENVIRONMENT@", f"EnvironmentFile=-{addresses}\n" if addresses else "")
    text = text.replace("@ADDRESSES@", " \\\n  $NODE_ADDRESSES" if addresses else "")
    return document(
        files=[
            file(CONFIG, yaml.safe_dump(dict(configuration), sort_keys=True)),
            file(BOOTSTRAP_KUBECONFIG, bootstrap_kubeconfig, 0o600),
            file(CLIENT_CA, client_ca),
        ],
        units=[unit("kubelet.service", text)],
    )


def _overlay(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        known = result.get(key)
        result[key] = _overlay(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return result
