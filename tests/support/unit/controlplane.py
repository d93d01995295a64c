"""A rendered control plane for tests: every object of one hosted cluster, by kind and name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hcp.controlplane import (
    apiserver,
    apiserver_config,
    capi,
    certs,
    controller_manager,
    copies,
    disruption,
    etcd,
    issuing,
    kubeconfigs,
    policies,
    scheduler,
    services,
)
from hcp.controlplane.namespace import namespace
from hcp.controlplane.params import Endpoint, Params, Publishing
from hcp.pki import new_signing_key

IMAGES = {
    name: f"registry.example/{name}@sha256:0"
    for name in (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "konnectivity-server",
        "konnectivity-agent",
        "coredns",
        "kube-proxy",
        "flannel",
    )
}


def params(**changes: Any) -> Params:
    base = Params(
        name="demo",
        cluster_namespace="clusters",
        namespace="clusters-demo",
        infra_id="demo-abcde",
        cluster_id="11111111-2222-3333-4444-555555555555",
        uid=1003,
        images=IMAGES,
        version="1.36.3",
        publishing={
            "APIServer": Publishing("APIServer", "LoadBalancer"),
            "Konnectivity": Publishing("Konnectivity", "Route", "konnectivity.apps.example"),
        },
        api_endpoint=Endpoint("10.88.0.65", 6443),
        konnectivity_endpoint=Endpoint("konnectivity.apps.example", 443),
    )
    return replace(base, **changes)


def workloads(p: Params) -> list[dict[str, Any]]:
    """Everything with pods."""
    return [
        etcd.stateful_set(p, "h"),
        apiserver.deployment(p, "h"),
        controller_manager.deployment(p, "h"),
        scheduler.deployment(p, "h"),
    ]


def secrets_and_config_maps(p: Params) -> list[dict[str, Any]]:
    """Everything a pod can mount."""
    authorities = issuing.authorities(p, {})
    pairs = issuing.read(authorities.secrets)
    leaves = issuing.leaves(p, certs.leaves(p), {}, pairs)
    root = pairs["root-ca"].trusted
    return [
        *authorities.secrets.values(),
        *leaves.secrets.values(),
        *certs.bundles(p, {n: c.trusted for n, c in pairs.items()}),
        *kubeconfigs.internal(p, leaves.secrets, root),
        *kubeconfigs.external(p, leaves.secrets, root),
        copies.signing_key(p, new_signing_key()),
        apiserver_config.config(p),
        apiserver_config.encryption_secret(p, [b"k" * 32]),
        scheduler.config(p),
    ]


def deterministic(p: Params) -> list[dict[str, Any]]:
    """Every object that holds no random key."""
    return [
        namespace(p),
        *workloads(p),
        services.api_service(p),
        services.konnectivity_service(p),
        *services.routes(p),
        *etcd.services(p),
        *policies.policies(p),
        *disruption.budgets(p),
        capi.cluster(p),
        capi.kubevirt_cluster(p),
        apiserver_config.config(p),
        scheduler.config(p),
        apiserver_config.encryption_secret(p, [b"k" * 32]),
    ]
