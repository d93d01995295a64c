"""Small configuration files of the node: names, resolver, CNI, containerd, kubelet, kube-proxy, registry.

Pure: a spec in, text out; no file is read or written here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hcp.api.addresses import in_url
from hcp.local.network.addresses import REGISTRY, REGISTRY_HOST
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
MAX_PODS = 500


def node_etc(node: Node, nameservers: list[str]) -> dict[str, str]:
    """The node's own /etc/hosts, /etc/resolv.conf and /etc/hostname."""
    return {
        "hosts": f"127.0.0.1 localhost\n{node.address} {node.name}\n{node.plan.primary.registry} {REGISTRY_HOST}\n",
        "resolv.conf": "".join(f"nameserver {server}\n" for server in nameservers),
        "hostname": f"{node.name}\n",
    }


def cni(node: Node, mtu: int) -> str:
    """A link of its own for each pod, addresses and host ports.

    No two pods share a wire, so none can speak in another one's name; what a pod sends from is checked by the node's
    rules, which also do the masquerading for all. Leases live in memory: after a restart no pod of before is left.
    """
    link: dict[str, Any] = {
        "type": "ptp",
        "mtu": mtu,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": pods}] for pods in node.pods],
            "routes": [{"dst": "::/0" if ":" in pods else "0.0.0.0/0"} for pods in node.pods],
            "dataDir": "/run/cni/networks",
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables", "snat": True}
    return json.dumps({"cniVersion": "1.0.0", "name": "hcp", "plugins": [link, portmap]}, indent=1) + "\n"


def containerd(layout: Layout, runc: Path, plugins: Path, pause: str, *, keep_oom_score: bool) -> str:
    return f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.opt"]

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
  discard_unpacked_layers = true
  max_concurrent_downloads = 4
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{layout.etc / "certs.d"}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {str(keep_oom_score).lower()}
  stats_collect_period = "1m" # every second by default: with hundreds of containers that is most of what it does
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{layout.etc / "cni"}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""


def registry_hosts(layout: Layout) -> str:
    """How containerd reaches the embedded registry: only over TLS, with its own authority."""
    return f"""\
server = "https://{REGISTRY}"

[host."https://{REGISTRY}"]
  capabilities = ["pull", "resolve"]
  ca = "{layout.pki / "registry-ca.crt"}"
"""


def kubelet(node: Node, layout: Layout) -> dict[str, Any]:
    pki = layout.pki
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": "127.0.0.1",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet-serving.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet-serving.key"),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.name}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "clusterDNS": [node.plan.primary.dns],
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/resolv.conf",
        "maxPods": MAX_PODS,
        "makeIPTablesUtilChains": False,
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        "registryPullQPS": 0,
        # When many control planes start at once, failed startup probes alone would be hundreds of writes a second.
        "eventRecordQPS": 10,
        "eventBurst": 50,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        # A quota makes a disk look full long before it is; the defaults would then evict pods and delete images.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
            "imagefs.inodesFree": "1%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 2,
        "logging": {"verbosity": 1},
    }


def kube_proxy(node: Node, layout: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(layout.kubeconfig_of("kube-proxy"))},
        "clusterCIDR": ",".join(stack.pods for stack in node.plan.stacks),
        "hostnameOverride": node.name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0, "min": 0},
        "nftables": {"minSyncPeriod": "0.1s", "syncPeriod": "30s"},
    }


def registry(layout: Layout, address: str, *, writable: str = "") -> dict[str, Any]:
    """Anybody may pull, nobody may push: pushing goes through a second instance on a Unix socket that only root has."""
    pki = layout.pki
    storage: dict[str, Any] = {
        "filesystem": {"rootdirectory": "/var/lib/registry", "maxthreads": 100},
        "redirect": {"disable": True},
        "maintenance": {"uploadpurging": {"enabled": False}},
    }
    http: dict[str, Any] = {"relativeurls": True, "secret": "not used: no upload spans two instances"}
    if writable:
        storage["delete"] = {"enabled": True}
        http |= {"net": "unix", "addr": writable}
    else:
        storage["maintenance"]["readonly"] = {"enabled": True}
        tls = {"certificate": str(pki / "registry.crt"), "key": str(pki / "registry.key")}
        http |= {"addr": f"{in_url(address)}:{REGISTRY.rpartition(':')[2]}", "tls": tls}
    return {"version": 0.1, "log": {"level": "warn", "accesslog": {"disabled": True}}, "storage": storage, "http": http}
