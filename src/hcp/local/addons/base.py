"""Rights that the control plane itself needs: who may speak to the kubelet and it to others, who writes addresses."""

from __future__ import annotations

from hcp.api.manifests import READ, Object, cluster_binding, cluster_role, group, rule, user

LOAD_BALANCER = "hcp-local:load-balancer"


def objects() -> list[Object]:
    return [
        cluster_binding("hcp-local:kubelet-api", group("hcp:kubelet-api"), "system:kubelet-api-admin"),
        # The API server learns from its own watch which node a pod is on. The kubelet may be quicker, is refused the
        # pod's volumes and Secrets, and tries again only after more than ten seconds. There is one node and nobody to
        # guard from it, so it may read them anyway.
        cluster_binding("hcp-local:nodes", group("system:nodes"), "system:node"),
        cluster_role(
            LOAD_BALANCER,
            [rule("", "services", READ), rule("", "services/status", ["patch", "update"])],
        ),
        cluster_binding(LOAD_BALANCER, user(LOAD_BALANCER)),
    ]
