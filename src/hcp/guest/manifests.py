"""Everything kept true inside the guest, in the order in which parts need each other."""

from __future__ import annotations

from hcp.guest import (
    autoscaling,
    coredns,
    flannel,
    ingress,
    konnectivity,
    kube_proxy,
    kubernetes_service,
    network_policy,
    node_trust,
    olm,
    rights,
    storage_parts,
)
from hcp.guest.monitoring import manifests as monitoring
from hcp.guest.objects import GuestParams, Manifest


def objects(g: GuestParams) -> list[Manifest]:
    return [
        *rights.objects(),
        *kubernetes_service.objects(g),
        *konnectivity.objects(g),
        *kube_proxy.objects(g),
        *flannel.objects(g),
        *network_policy.objects(g),
        *coredns.objects(g),
        *node_trust.objects(g),
        *storage_parts.objects(g),
        *olm.objects(g),
        *ingress.objects(g),
        *monitoring.objects(g),
        *autoscaling.objects(g),
    ]
