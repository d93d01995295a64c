"""Rights that the control plane itself needs: who may speak to the kubelet, who may write Service addresses."""

from __future__ import annotations

from hcp.api.manifests import READ, Object, cluster_binding, cluster_role, group, rule, user

LOAD_BALANCER = "hcp-local:load-balancer"


def objects() -> list[Object]:
    return [
        cluster_binding("hcp-local:kubelet-api", group("hcp:kubelet-api"), "system:kubelet-api-admin"),
        cluster_role(
            LOAD_BALANCER,
            [rule("", "services", READ), rule("", "services/status", ["patch", "update"])],
        ),
        cluster_binding(LOAD_BALANCER, user(LOAD_BALANCER)),
    ]
