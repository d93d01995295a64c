"""The processes of a node, and the configuration files they read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from hcp.api.addresses import in_url
from hcp.local.host.machine import outside_mtu
from hcp.local.network.addresses import REGISTRY
from hcp.local.node import files as node_files
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node
from hcp.local.state.parts import MIRROR_PROXY
from hcp.local.state.spec import write_file
from hcp.local.supervisor.processes import Probe, Process

BALANCER = "load-balancer"
_CAP_SYS_RESOURCE = 24


def write_configuration(
    node: Node, layout: Layout, binaries: Mapping[str, Path], pause: str, *, may_lower_oom_score: bool
) -> None:
    """Every file the node's processes read; `layout` is the node's."""
    etc = layout.etc
    runtime = node_files.containerd(
        layout, binaries["runc"], binaries["ptp"].parent, pause, keep_oom_score=not may_lower_oom_score
    )
    documents = {
        "kubelet.yaml": node_files.kubelet(node, layout),
        "kube-proxy.yaml": node_files.kube_proxy(node, layout),
    }
    if node.is_first:
        documents["registry.yaml"] = node_files.registry(layout, node.plan.primary.registry)
        documents["registry-push.yaml"] = node_files.registry(layout, "", writable=layout.push_socket.name)
    write_file(etc / "containerd.toml", runtime)
    write_file(etc / "cni" / "10-hcp.conflist", node_files.cni(node, outside_mtu()))
    write_file(etc / "certs.d" / REGISTRY / "hosts.toml", node_files.registry_hosts(layout))
    for name, document in documents.items():
        write_file(etc / name, yaml.safe_dump(document, sort_keys=False))


def may_lower_oom_score() -> bool:
    """Whether this root has CAP_SYS_RESOURCE; without it no container may get a better OOM score than its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return True


def processes(node: Node, layout: Layout, binaries: Mapping[str, Path], versions: Mapping[str, str]) -> list[Process]:
    """What runs on a node; beside the control plane also what the cluster has once."""
    # The first node starts together with its API server; when others start, it is there.
    api = ["kube-apiserver"] if node.is_first else []
    found = _every_node(node, layout, binaries, versions, api)
    if node.is_first:
        found += _once(node, layout, binaries, versions)
    if node.spec.has_mirrors:
        found.append(_mirrors(layout, binaries[MIRROR_PROXY], api))
    return found


def _every_node(
    node: Node, layout: Layout, binaries: Mapping[str, Path], versions: Mapping[str, str], api: list[str]
) -> list[Process]:
    """containerd, kubelet and kube-proxy."""
    etc = layout.etc
    containerd = Process(
        "containerd",
        [str(binaries["containerd"]), "--config", str(etc / "containerd.toml"), "--log-level", "warn"],
        probe=Probe(socket=node_files.CONTAINERD_SOCKET),
        version=versions.get("containerd", ""),
    )
    kubelet = Process(
        "kubelet",
        [
            str(binaries["kubelet"]),
            f"--config={etc / 'kubelet.yaml'}",
            f"--kubeconfig={layout.kubeconfig_of('kubelet')}",
            f"--hostname-override={node.name}",
            f"--node-ip={','.join(node.addresses)}",
            "--root-dir=/var/lib/kubelet",
            # Statistics of every cgroup each ten seconds by default: a fifth of its work with two hundred pods.
            "--housekeeping-interval=30s",
        ],
        after=[*api, "containerd"],
        probe=Probe(url="http://127.0.0.1:10248/healthz"),
        version=versions.get("kubelet", ""),
    )
    proxy = Process(
        "kube-proxy",
        [str(binaries["kube-proxy"]), f"--config={etc / 'kube-proxy.yaml'}", "--v=1"],
        after=api,
        probe=Probe(url="http://127.0.0.1:10256/livez"),
        version=versions.get("kube-proxy", ""),
    )
    return [containerd, kubelet, proxy]


def _once(node: Node, layout: Layout, binaries: Mapping[str, Path], versions: Mapping[str, str]) -> list[Process]:
    """The registry, and the controller that hands out LoadBalancer addresses unless MetalLB does."""
    etc, pki, plan = layout.etc, layout.pki, node.plan
    pulled = f"https://{in_url(plan.primary.registry)}:{REGISTRY.rpartition(':')[2]}/v2/"
    pull = Process(
        "registry",
        [str(binaries["registry"]), "serve", str(etc / "registry.yaml")],
        env={"OTEL_TRACES_EXPORTER": "none"},
        probe=Probe(url=pulled, ca=str(pki / "registry-ca.crt")),
        version=versions.get("registry", ""),
    )
    push = Process(
        "registry-push",
        [str(binaries["registry"]), "serve", str(etc / "registry-push.yaml")],
        env={"OTEL_TRACES_EXPORTER": "none"},
        probe=Probe(socket=layout.push_socket.name),
        version=versions.get("registry", ""),
    )
    if node.spec.has_metallb:
        return [pull, push]
    balancer = Process(
        BALANCER,
        [
            sys.executable,
            "-m",
            "hcp.local.network.loadbalancer",
            str(layout.kubeconfig_of(BALANCER)),
            *(word for stack in plan.stacks for word in (stack.load_balancers, stack.router)),
        ],
        after=["kube-apiserver"],
        version="hcp",
    )
    return [pull, push, balancer]


def _mirrors(layout: Layout, program: Path, api: list[str]) -> Process:
    """Keeps containerd's mirrors as the cluster's mirror sets say."""
    access = layout.kubeconfig_of("mirrors")
    argv = [sys.executable, "-m", "hcp.local.node.mirrors", str(access), str(layout.etc), str(program)]
    return Process("mirrors", argv, after=api, version="hcp")
