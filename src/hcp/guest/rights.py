"""Rights that must be there before the first node: bootstrapping kubelets, and the API server towards them."""

from __future__ import annotations

from hcp.controlplane.certs import BOOTSTRAPPER
from hcp.guest.objects import Manifest, cluster_role_binding, user


def objects() -> list[Manifest]:
    return [
        # A new node may ask for a certificate; who it is, is checked by the approver in the operator.
        cluster_role_binding("hcp:node-bootstrapper", "system:node-bootstrapper", user(BOOTSTRAPPER)),
        cluster_role_binding(
            "hcp:kube-apiserver-to-kubelet", "system:kubelet-api-admin", user("system:kube-apiserver")
        ),
    ]
