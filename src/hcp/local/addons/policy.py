"""kube-router, for NetworkPolicy only: routing and Services are done by others."""

from __future__ import annotations

from hcp.api.manifests import READ, Object, account, cluster_binding, cluster_role, rule, service_account
from hcp.local.addons.objects import workload
from hcp.local.network.addresses import Addresses

NAMESPACE = "kube-system"


def objects(plan: Addresses, image: str) -> list[Object]:
    container: Object = {
        "name": "kube-router",
        "image": image,
        "args": [
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            f"--service-cluster-ip-range={plan.services}",
            f"--service-external-ip-range={plan.load_balancers}",
            "--health-port=20244",
            "--v=1",
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # Straight to the API server: it must work before Services do.
            {"name": "KUBERNETES_SERVICE_HOST", "value": plan.node},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": 20244, "host": "127.0.0.1"},
            "initialDelaySeconds": 30,
        },
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 20244, "host": "127.0.0.1"}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "20m", "memory": "50Mi"}},
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "lock", "mountPath": "/run/xtables.lock"}],
    }
    pod: Object = {
        "serviceAccountName": "kube-router",
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}}],
    }
    watched = "namespaces pods services nodes endpoints"
    return [
        service_account("kube-router", NAMESPACE),
        cluster_role(
            "kube-router",
            [
                rule("", watched, READ),
                rule("networking.k8s.io", "networkpolicies", READ),
                rule("discovery.k8s.io", "endpointslices", READ),
            ],
        ),
        cluster_binding("kube-router", account("kube-router", NAMESPACE)),
        workload("DaemonSet", "kube-router", NAMESPACE, {"k8s-app": "kube-router"}, pod),
    ]
