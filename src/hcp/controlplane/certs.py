"""Which certificates a control plane has: authorities, leaves, and the bundles made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hcp.controlplane.meta import config_map, secret, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.pki import KeyPair, Leaf

# Secret name -> common name. Each holds ca.crt and ca.key, and is kept until somebody asks for another (rotation.py).
AUTHORITIES: dict[str, str] = {
    "root-ca": "root-ca",
    "etcd-signer": "etcd-signer",
    "kas-aggregator-client-signer": "aggregator-signer",
    "kube-control-plane-signer": "kube-control-plane-signer",
    "kube-apiserver-to-kubelet-signer": "kube-apiserver-to-kubelet-signer",
    "system-admin-signer": "admin-kubeconfig-signer",
    "hcco-signer": "hcco-signer",
    "cluster-signer-ca": "kube-csr-signer",
    "konnectivity-signer": "konnectivity-signer",
}
# Who may log in with a client certificate: ConfigMap client-ca.
CLIENT_CAS = (
    "kube-control-plane-signer",
    "kube-apiserver-to-kubelet-signer",
    "system-admin-signer",
    "hcco-signer",
    "cluster-signer-ca",
)
KUBELET_CLIENT_CAS = ("kube-apiserver-to-kubelet-signer", "cluster-signer-ca")
BOOTSTRAP_NS = "openshift-machine-config-operator"
BOOTSTRAPPER = f"system:serviceaccount:{BOOTSTRAP_NS}:node-bootstrapper"
BOOTSTRAP_GROUPS = (f"system:serviceaccounts:{BOOTSTRAP_NS}", "system:serviceaccounts")


@dataclass(frozen=True, slots=True)
class LeafSecret:
    """One leaf certificate and the Secret it lies in."""

    name: str
    authority: str
    leaf: Leaf
    cert_key: str = "tls.crt"
    private_key: str = "tls.key"
    # What the certificate says depends on the published address: it can only be made once that is known.
    published: bool = False


def _svc(name: str, ns: str) -> tuple[str, ...]:
    return (name, f"{name}.{ns}", f"{name}.{ns}.svc", f"{name}.{ns}.svc.cluster.local")


def hosts(p: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and the addresses under which the API is called."""
    dns = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        *_svc("kube-apiserver", p.namespace),
        f"api.{p.name}.hypershift.local",
    ]
    ips = ["127.0.0.1", "::1", *p.first_service_ips(), p.advertise_address]
    if p.api_endpoint:
        (ips if p.api_endpoint.is_ip else dns).append(p.api_endpoint.host)
    ips += p.api_addresses
    if p.api_dns_name:
        dns.append(p.api_dns_name)
    return tuple(dict.fromkeys(dns)), tuple(dict.fromkeys(ips))


def etcd_leaves(p: Params) -> list[LeafSecret]:
    """Needed by etcd; known from the first moment. Somebody else's etcd has its own."""
    if p.foreign_etcd:
        return []
    discovery = (f"*.etcd-discovery.{p.namespace}.svc", f"*.etcd-discovery.{p.namespace}.svc.cluster.local")
    local = ("127.0.0.1", "::1")
    return [
        LeafSecret(
            "etcd-server-tls",
            "etcd-signer",
            Leaf("etcd-server", (), (*_svc("etcd-client", p.namespace), *discovery, "localhost"), local, "both"),
            "server.crt",
            "server.key",
        ),
        LeafSecret(
            "etcd-peer-tls",
            "etcd-signer",
            Leaf("etcd-discovery", (), discovery, local, "both"),
            "peer.crt",
            "peer.key",
        ),
        LeafSecret(
            "etcd-client-tls",
            "etcd-signer",
            Leaf("etcd-client", ("kubernetes",), usage="client"),
            "etcd-client.crt",
            "etcd-client.key",
        ),
    ]


def leaves(p: Params) -> list[LeafSecret]:
    """Every leaf of the control plane."""
    dns, ips = hosts(p)
    konnectivity_dns, konnectivity_ips = list(_svc("konnectivity-server", p.namespace)), ["127.0.0.1"]
    if p.konnectivity_endpoint:
        target = konnectivity_ips if p.konnectivity_endpoint.is_ip else konnectivity_dns
        target.append(p.konnectivity_endpoint.host)

    def client(name: str, authority: str, cn: str, *orgs: str) -> LeafSecret:
        return LeafSecret(name, authority, Leaf(cn, orgs, usage="client"))

    def server(name: str, cn: str) -> LeafSecret:
        return LeafSecret(name, "root-ca", Leaf(cn, (), (*_svc(cn, p.namespace), "localhost"), ("127.0.0.1",)))

    signer = "kube-control-plane-signer"
    return [
        *etcd_leaves(p),
        LeafSecret("kas-server-crt", "root-ca", Leaf("kubernetes", ("kubernetes",), dns, ips), published=True),
        server("kcm-server", "kube-controller-manager"),
        server("scheduler-server", "kube-scheduler"),
        client("kas-aggregator-crt", "kas-aggregator-client-signer", "system:openshift-aggregator"),
        client("kube-scheduler-client", signer, "system:kube-scheduler"),
        client("kube-controller-manager", signer, "system:kube-controller-manager"),
        client("kas-kubelet-client-crt", "kube-apiserver-to-kubelet-signer", "system:kube-apiserver", "kubernetes"),
        client("system-admin-client", "system-admin-signer", "system:admin", "system:masters"),
        client("hcco-client", "hcco-signer", "system:hosted-cluster-config", "system:masters"),
        client("kas-bootstrap-client", "cluster-signer-ca", BOOTSTRAPPER, *BOOTSTRAP_GROUPS),
        LeafSecret(
            "konnectivity-cluster",
            "konnectivity-signer",
            Leaf("konnectivity-server", ("openshift",), tuple(konnectivity_dns), tuple(konnectivity_ips)),
            published=True,
        ),
        client("konnectivity-agent", "konnectivity-signer", "konnectivity-agent", "openshift"),
    ]


def authority_pair(manifest: Mapping[str, object]) -> KeyPair | None:
    """The CA in a Secret, None when the Secret is not one."""
    data = secret_data(manifest)
    if not data.get("ca.crt") or not data.get("ca.key"):
        return None
    return KeyPair(data["ca.crt"], data["ca.key"])


def leaf_secret(p: Params, spec: LeafSecret, pair: KeyPair, ca: bytes) -> Manifest:
    data = {spec.cert_key: pair.cert_pem, spec.private_key: pair.key_pem, "ca.crt": ca}
    return secret(p, spec.name, data)


def leaf_pair(spec: LeafSecret, manifest: Mapping[str, object]) -> KeyPair:
    data = secret_data(manifest)
    return KeyPair(data.get(spec.cert_key, b""), data.get(spec.private_key, b""))


def bundles(p: Params, cas: Mapping[str, bytes]) -> list[Manifest]:
    """The ConfigMaps that say whom to trust; `cas` has every certificate to trust, by authority."""

    def joined(parts: tuple[str, ...]) -> str:
        return "".join(cas[n].decode() for n in parts)

    return [
        config_map(p, "root-ca", {"ca.crt": joined(("root-ca",))}),
        config_map(p, "client-ca", {"ca.crt": joined(CLIENT_CAS) + p.client_ca.decode()}),
        config_map(p, "kubelet-client-ca", {"ca.crt": joined(KUBELET_CLIENT_CAS)}),
        config_map(p, "etcd-ca", {"ca.crt": joined(("etcd-signer",))}),
        config_map(p, "aggregator-client-ca", {"ca.crt": joined(("kas-aggregator-client-signer",))}),
        config_map(p, "konnectivity-ca-bundle", {"ca.crt": joined(("konnectivity-signer",))}),
    ]
