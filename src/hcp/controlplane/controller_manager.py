"""kube-controller-manager."""

from __future__ import annotations

from hcp.api import names
from hcp.controlplane.meta import LABEL_MANAGED_BY, MANAGER, component_labels, obj
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.pod import Pod, config_volume, container, http_probe, requests, rolling, secret_volume, template

COMPONENT = "kube-controller-manager"
PORT = 10257
ROOT = "/etc/kubernetes"
SECRETS = {
    "kube-controller-manager-kubeconfig": "kubeconfig",
    "kcm-server": "server",
    "cluster-signer-ca": "cluster-signer",
    "sa-signing-key": "sa",
}
CONFIG_MAPS = {"root-ca": "root-ca"}


def mounted() -> tuple[tuple[str, str], ...]:
    return (*(("Secret", s) for s in SECRETS), *(("ConfigMap", c) for c in CONFIG_MAPS))


def arguments(p: Params, root: str = ROOT) -> list[str]:
    kubeconfig = f"{root}/kubeconfig/kubeconfig"
    args = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        # It starts together with the API server: asking too early must not end the process.
        "authentication-tolerate-lookup-failure": "true",
        "allocate-node-cidrs": "true" if p.allocate_node_cidrs else "false",
        "bind-address": "0.0.0.0",
        "cluster-cidr": ",".join(p.cluster_networks),
        "cluster-signing-cert-file": f"{root}/cluster-signer/ca.crt",
        "cluster-signing-duration": "17520h",
        "cluster-signing-key-file": f"{root}/cluster-signer/ca.key",
        "concurrent-gc-syncs": "5",
        "configure-cloud-routes": "false",
        "controllers": "*,-bootstrap-signer-controller,-token-cleaner-controller",
        "kube-api-burst": "300",
        "kube-api-qps": "150",
        "leader-elect": "true",
        # Longer than usual: on a crowded machine a slow API must not end the process.
        "leader-elect-lease-duration": "30s",
        "leader-elect-renew-deadline": "20s",
        "leader-elect-resource-lock": "leases",
        "leader-elect-retry-period": "4s",
        "node-monitor-grace-period": "50s",
        "profiling": "false",
        "root-ca-file": f"{root}/root-ca/ca.crt",
        "secure-port": str(PORT),
        "service-account-private-key-file": f"{root}/sa/service-account.key",
        "service-cluster-ip-range": ",".join(p.service_networks),
        "terminated-pod-gc-threshold": "1000",
        "tls-cert-file": f"{root}/server/tls.crt",
        "tls-min-version": "VersionTLS12",
        "tls-private-key-file": f"{root}/server/tls.key",
        "use-service-account-credentials": "true",
        "v": "1",
    }
    if p.allocate_node_cidrs:
        family = "-ipv6" if ":" in p.cluster_networks[0] else ""
        both = len(p.cluster_networks) > 1
        args[f"node-cidr-mask-size{'-ipv4' if both else family}"] = str(p.host_prefix)
    return [f"--{flag}={value}" for flag, value in args.items()]


def deployment(p: Params, config_hash: str) -> Manifest:
    size = ("50m", "128Mi") if p.highly_available else ("5m", "56Mi")
    main = container(
        COMPONENT,
        p.image(COMPONENT),
        ["kube-controller-manager", *arguments(p)],
        resources=requests(p, COMPONENT, COMPONENT, *size),
        ports={"client": PORT},
        mounts={name: f"{ROOT}/{directory}" for name, directory in {**SECRETS, **CONFIG_MAPS}.items()},
        env={"GOGC": "50"},
        startupProbe=http_probe("/healthz", "client", failures=300),
        readinessProbe=http_probe("/healthz", "client", period=5, timeout=5),
        livenessProbe=http_probe("/healthz", "client", period=30, timeout=15, failures=6),
    )
    volumes = [*(secret_volume(n, n) for n in SECRETS), *(config_volume(n, n) for n in CONFIG_MAPS)]
    priority = p.annotations.get(names.ANNOTATION_CONTROL_PLANE_PRIORITY) or names.PRIORITY_CONTROL_PLANE
    labels = component_labels(p, COMPONENT)
    spec = {
        "replicas": p.controllers,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": labels},
        "strategy": rolling(p.controllers),
        "template": template(p, Pod(COMPONENT, [main], volumes, priority, config_hash)),
    }
    return obj(p, "apps/v1", "Deployment", COMPONENT, {"spec": spec}, labels=labels | {LABEL_MANAGED_BY: MANAGER})
