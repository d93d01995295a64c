"""Every key and certificate of an embedded cluster, on disk, made once and renewed when due.

Three authorities, as in a production cluster: the cluster's own, etcd's, and the one for requests that the API
server forwards to aggregated servers. A fourth signs the registry, because that one is published to tenants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hcp.kube.config import DIRECT
from hcp.local.network.addresses import REGISTRY_HOST
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node, first, joined
from hcp.local.state.spec import Spec, write_file
from hcp.pki import KeyPair, Leaf, issue_leaf, kubeconfig, kubeconfig_yaml, needs_renewal, new_ca, new_signing_key
from hcp.pki import public_key as public_key_of

AUTHORITIES = {
    "ca": "hcp-local",
    "etcd-ca": "hcp-local-etcd",
    "front-proxy-ca": "hcp-local-front-proxy",
    "registry-ca": "hcp-local-registry",
}

_NODE_USERS = ("kube-proxy", "kubelet", "mirrors")


@dataclass(frozen=True)
class Issued:
    """A leaf certificate and who signs it."""

    ca: str
    leaf: Leaf


def leaves(spec: Spec) -> dict[str, Issued]:
    """All leaf certificates of a cluster, by file name."""
    loopback = ("localhost",), ("127.0.0.1",)
    wanted = {
        "etcd": Issued("etcd-ca", Leaf("etcd", (), *loopback, usage="both")),
        "etcd-client": Issued("etcd-ca", Leaf("kube-apiserver", usage="client")),
        "front-proxy": Issued("front-proxy-ca", Leaf("front-proxy-client", usage="client")),
        "apiserver": Issued("ca", Leaf("kube-apiserver", (), *_api_names(spec))),
        "admin": Issued("ca", Leaf("hcp-admin", ("system:masters",), usage="client")),
        # What probes use. A production cluster lets anybody ask for health; here even that needs a certificate.
        "probe": Issued("ca", Leaf("hcp-probe", ("system:monitoring",), usage="client")),
    }
    if spec.has_node:
        wanted |= _of_node(first(spec)) | {
            "kube-controller-manager": Issued("ca", Leaf("system:kube-controller-manager", usage="client")),
            "kube-scheduler": Issued("ca", Leaf("system:kube-scheduler", usage="client")),
            "controller-manager-serving": Issued("ca", Leaf("kube-controller-manager", (), *loopback)),
            "scheduler-serving": Issued("ca", Leaf("kube-scheduler", (), *loopback)),
            "load-balancer": Issued("ca", Leaf("hcp-local:load-balancer", usage="client")),
            "kubelet-client": Issued("ca", Leaf("kube-apiserver-kubelet-client", ("hcp:kubelet-api",), usage="client")),
            "registry": Issued(
                "registry-ca", Leaf(REGISTRY_HOST, (), (REGISTRY_HOST,), (spec.addresses.primary.registry,))
            ),
        }
    return wanted


def _of_node(node: Node) -> dict[str, Issued]:
    """What every node has of its own."""
    user, groups = f"system:node:{node.name}", ("system:nodes",)
    wanted = {
        "kube-proxy": Issued("ca", Leaf("system:kube-proxy", usage="client")),
        "kubelet": Issued("ca", Leaf(user, groups, usage="client")),
        "kubelet-serving": Issued("ca", Leaf(user, groups, (node.name,), tuple(node.addresses))),
    }
    if node.spec.has_mirrors:
        wanted["mirrors"] = Issued("ca", Leaf("hcp-local:mirrors", usage="client"))
    return wanted


def _api_names(spec: Spec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    ips = ["127.0.0.1"]
    if spec.has_node:
        for stack in spec.addresses.stacks:
            ips += [stack.node, stack.kubernetes_service]
    return (*names, "localhost"), tuple(ips)


def ensure(layout: Layout, spec: Spec) -> None:
    """Makes what is missing or near its end, and the kubeconfigs that carry it."""
    authorities = {name: _authority(layout.pki, name, cn) for name, cn in AUTHORITIES.items()}
    _issue(layout.pki, leaves(spec), authorities)
    _signing_key(layout.pki)
    users = ["admin", *_NODE_USERS]
    if spec.has_node:
        users += ["kube-controller-manager", "kube-scheduler", "load-balancer"]
    _kubeconfigs(layout, users, spec.server, authorities["ca"].cert_pem)
    for node in joined(spec):
        _joined(node.layout(layout), node, authorities)


def _joined(layout: Layout, node: Node, authorities: dict[str, KeyPair]) -> None:
    """A node that joined gets its own keys and whom to trust, nothing else."""
    layout.make()
    for name in ("ca", "registry-ca"):
        write_file(layout.pki / f"{name}.crt", authorities[name].cert_pem, mode=0o644)
    _issue(layout.pki, _of_node(node), authorities)
    _kubeconfigs(layout, _NODE_USERS, node.spec.server, authorities["ca"].cert_pem)


def _issue(folder: Path, wanted: dict[str, Issued], authorities: dict[str, KeyPair]) -> None:
    for name, one in wanted.items():
        pair = _read(folder, name)
        ca = authorities[one.ca]
        if pair is None or needs_renewal(pair, ca.cert_pem, one.leaf):
            _write(folder, name, issue_leaf(ca, one.leaf))


def _kubeconfigs(layout: Layout, users: Iterable[str], server: str, trusted: bytes) -> None:
    for user in users:
        pair = _read(layout.pki, user)
        if pair is not None:
            config = kubeconfig(server, trusted, pair.cert_pem, pair.key_pem, name=user)
            # A proxy out of this machine leads to no cluster on it.
            config["clusters"][0]["cluster"]["extensions"] = [{"name": DIRECT, "extension": {"provider": "hcp"}}]
            write_file(layout.kubeconfig_of(user), kubeconfig_yaml(config))


def _authority(folder: Path, name: str, cn: str) -> KeyPair:
    pair = _read(folder, name)
    if pair is None:
        pair = new_ca(cn)
        _write(folder, name, pair)
    return pair


def _signing_key(folder: Path) -> None:
    private = folder / "service-accounts.key"
    if not private.exists():
        write_file(private, new_signing_key())
    write_file(folder / "service-accounts.pub", public_key_of(private.read_bytes()))


def _read(folder: Path, name: str) -> KeyPair | None:
    try:
        return KeyPair((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())
    except FileNotFoundError:
        return None


def _write(folder: Path, name: str, pair: KeyPair) -> None:
    write_file(folder / f"{name}.key", pair.key_pem)
    write_file(folder / f"{name}.crt", pair.cert_pem, mode=0o644)
