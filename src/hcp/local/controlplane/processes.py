"""Command lines of the control plane processes. Pure: a spec and paths in, processes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hcp.local.controlplane import encryption
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec
from hcp.local.supervisor.processes import Probe, Process

Binaries = Mapping[str, Path]
Versions = Mapping[str, str]


def control_plane(spec: Spec, layout: Layout, binaries: Binaries, versions: Versions) -> list[Process]:
    """etcd and the API server; with a node also the controller manager and the scheduler."""
    processes = [_etcd(spec, layout, binaries, versions), _api_server(spec, layout, binaries, versions)]
    if spec.has_node:
        processes += [
            _controller_manager(spec, layout, binaries, versions),
            _scheduler(layout, binaries, versions),
        ]
    return processes


def _etcd(spec: Spec, layout: Layout, binaries: Binaries, versions: Versions) -> Process:
    pki = layout.pki
    client = f"https://127.0.0.1:{spec.etcd_port}"
    peer = f"https://127.0.0.1:{spec.etcd_peer_port}"
    argv = [
        str(binaries["etcd"]),
        "--name=local",
        f"--data-dir={layout.data / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        f"--trusted-ca-file={pki / 'etcd-ca.crt'}",
        "--client-cert-auth",
        f"--peer-cert-file={pki / 'etcd.crt'}",
        f"--peer-key-file={pki / 'etcd.key'}",
        f"--peer-trusted-ca-file={pki / 'etcd-ca.crt'}",
        "--peer-client-cert-auth",
        "--quota-backend-bytes=4294967296",
        "--auto-compaction-retention=0",
        "--snapshot-count=10000",
        "--log-level=warn",
    ]
    probe = Probe(
        url=f"{client}/readyz",
        ca=str(pki / "etcd-ca.crt"),
        cert=str(pki / "etcd-client.crt"),
        key=str(pki / "etcd-client.key"),
    )
    return Process("etcd", argv, probe=probe, version=versions.get("etcd", ""), stop_seconds=10)


def _api_server(spec: Spec, layout: Layout, binaries: Binaries, versions: Versions) -> Process:
    pki = layout.pki
    services = _services(spec) if spec.has_node else "10.191.0.0/16"
    everywhere = "::" if spec.has_node and spec.addresses.six else "0.0.0.0"
    argv = [
        str(binaries["kube-apiserver"]),
        f"--etcd-servers=https://127.0.0.1:{spec.etcd_port}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        f"--bind-address={everywhere if spec.has_node else '127.0.0.1'}",
        f"--advertise-address={spec.api_host}",
        f"--secure-port={spec.api_port}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={services}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
        "--enable-aggregator-routing=true",
        *encryption.flags(layout),
        "--profiling=false",
        "--v=1",
    ]
    if spec.has_node:
        argv += [
            f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
            f"--kubelet-client-key={pki / 'kubelet-client.key'}",
            f"--kubelet-certificate-authority={pki / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
        ]
    else:
        # Nothing runs pods here, and no controller would ever create the default ServiceAccount pods ask for.
        argv += ["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"]
    probe = Probe(
        url=f"{spec.server}/readyz",
        ca=str(pki / "ca.crt"),
        cert=str(pki / "probe.crt"),
        key=str(pki / "probe.key"),
    )
    return Process(
        "kube-apiserver",
        argv,
        after=["etcd"],
        probe=probe,
        version=versions.get("kube-apiserver", ""),
        stop_seconds=10,
    )


def _controller_manager(spec: Spec, layout: Layout, binaries: Binaries, versions: Versions) -> Process:
    pki = layout.pki
    config = layout.kubeconfig_of("kube-controller-manager")
    argv = [
        str(binaries["kube-controller-manager"]),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={pki / 'controller-manager-serving.crt'}",
        f"--tls-private-key-file={pki / 'controller-manager-serving.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        "--use-service-account-credentials=true",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={','.join(stack.pods for stack in spec.addresses.stacks)}",
        *_prefixes(spec),
        f"--service-cluster-ip-range={_services(spec)}",
        # A claim that somebody else changed in between is bound at the next round: 15 s later by default.
        "--pvclaimbinder-sync-period=2s",
        "--leader-elect=false",
        "--profiling=false",
        "--v=1",
    ]
    probe = Probe(url="https://127.0.0.1:10257/healthz", ca=str(pki / "ca.crt"))
    return Process(
        "kube-controller-manager",
        argv,
        after=["kube-apiserver"],
        probe=probe,
        version=versions.get("kube-controller-manager", ""),
    )


def _services(spec: Spec) -> str:
    return ",".join(stack.services for stack in spec.addresses.stacks)


def _prefixes(spec: Spec) -> list[str]:
    """How much of each range a node gets; with one family the flag has no family in its name."""
    stacks = spec.addresses.stacks
    if len(stacks) == 1:
        return [f"--node-cidr-mask-size={stacks[0].node_prefix}"]
    return [f"--node-cidr-mask-size-ipv{6 if ':' in one.pods else 4}={one.node_prefix}" for one in stacks]


def _scheduler(layout: Layout, binaries: Binaries, versions: Versions) -> Process:
    pki = layout.pki
    config = layout.kubeconfig_of("kube-scheduler")
    argv = [
        str(binaries["kube-scheduler"]),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={pki / 'scheduler-serving.crt'}",
        f"--tls-private-key-file={pki / 'scheduler-serving.key'}",
        "--leader-elect=false",
        "--profiling=false",
        "--v=1",
    ]
    probe = Probe(url="https://127.0.0.1:10259/healthz", ca=str(pki / "ca.crt"))
    return Process(
        "kube-scheduler", argv, after=["kube-apiserver"], probe=probe, version=versions.get("kube-scheduler", "")
    )
