"""Rights that the control plane itself needs: who may speak to the kubelet, who may write Service addresses."""

from __future__ import annotations

from hcp.local.addons.objects import Object, cluster_role, cluster_role_binding, group, rule, user

LOAD_BALANCER = "hcp-local:load-balancer"


def objects() -> list[Object]:
    return [
        cluster_role_binding("hcp-local:kubelet-api", "system:kubelet-api-admin", group("hcp:kubelet-api")),
        cluster_role(
            LOAD_BALANCER,
            [rule([""], ["services"], ["get", "list", "watch"]), rule([""], ["services/status"], ["patch", "update"])],
        ),
        cluster_role_binding(LOAD_BALANCER, LOAD_BALANCER, user(LOAD_BALANCER)),
    ]
