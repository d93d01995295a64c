"""kube-controller-manager."""

from __future__ import annotations

from hcp.api import names
from hcp.controlplane import controllers, tls_profiles, tuning, validity
from hcp.controlplane.controllers import ROOT
from hcp.controlplane.params import Manifest, Params

COMPONENT = "kube-controller-manager"
PORT = 10257
CONTROLLER = controllers.Controller(
    component=COMPONENT,
    port=PORT,
    health="/healthz",
    secrets={
        "kube-controller-manager-kubeconfig": "kubeconfig",
        "kcm-server": "server",
        "cluster-signer-ca": "cluster-signer",
        "sa-signing-key": "sa",
    },
    config_maps={"root-ca": "root-ca"},
    size=("3m", "56Mi"),
    size_highly_available=("50m", "128Mi"),
    liveness_period=30,
    liveness_failures=6,
)


def arguments(p: Params, root: str = ROOT) -> list[str]:
    kubeconfig, lease = f"{root}/kubeconfig/kubeconfig", controllers.lease(p)
    args = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        # It starts together with the API server: asking too early must not end the process.
        "authentication-tolerate-lookup-failure": "true",
        "allocate-node-cidrs": "true" if p.allocate_node_cidrs else "false",
        "bind-address": p.everywhere,
        "cluster-cidr": ",".join(p.cluster_networks),
        "cluster-signing-cert-file": f"{root}/cluster-signer/ca.crt",
        "cluster-signing-duration": f"{int(validity.of_kubelets(p).total_seconds() // 3600)}h",
        "cluster-signing-key-file": f"{root}/cluster-signer/ca.key",
        "concurrent-gc-syncs": "5",
        "configure-cloud-routes": "false",
        "controllers": "*,-bootstrap-signer-controller,-token-cleaner-controller",
        "kube-api-burst": "300",
        "kube-api-qps": "150",
        "leader-elect": "true",
        "leader-elect-lease-duration": f"{lease.duration}s",
        "leader-elect-renew-deadline": f"{lease.renew_deadline}s",
        "leader-elect-resource-lock": "leases",
        "leader-elect-retry-period": f"{lease.retry_period}s",
        "node-monitor-grace-period": "50s",
        "profiling": "false",
        "root-ca-file": f"{root}/root-ca/ca.crt",
        "secure-port": str(PORT),
        "service-account-private-key-file": f"{root}/sa/service-account.key",
        "service-cluster-ip-range": ",".join(p.service_networks),
        "terminated-pod-gc-threshold": "1000",
        "tls-cert-file": f"{root}/server/tls.crt",
        "tls-min-version": tls_profiles.of(p.api_config).version,
        "tls-private-key-file": f"{root}/server/tls.key",
        "use-service-account-credentials": "true",
        "v": tuning.value(p.annotations, names.ANNOTATION_KCM_VERBOSITY, "1"),
    }
    args |= tls_profiles.chosen_ciphers(p.api_config)
    if p.allocate_node_cidrs:
        args |= _node_ranges(p)
    return [f"--{flag}={value}" for flag, value in args.items()]


def _node_ranges(p: Params) -> dict[str, str]:
    """A flag for each network; the one for IPv4 alone has no family in its name."""
    alone = len(p.cluster_networks) == 1
    four = "" if alone else "-ipv4"
    pairs = zip(p.cluster_networks, p.host_prefixes, strict=True)
    return {f"node-cidr-mask-size{'-ipv6' if ':' in network else four}": str(prefix) for network, prefix in pairs}


def deployment(p: Params, config_hash: str) -> Manifest:
    return controllers.deployment(p, CONTROLLER, arguments(p), config_hash)
