"""kube-router, for NetworkPolicy only: routing and Services are done by others."""

from __future__ import annotations

from hcp.api.manifests import READ, Object, account, cluster_binding, cluster_role, config_map, rule, service_account
from hcp.local.addons.objects import workload
from hcp.local.network.addresses import MAX_NODES, Addresses

NAMESPACE = "kube-system"


def objects(plan: Addresses, image: str) -> list[Object]:
    container: Object = {
        "name": "kube-router",
        "image": image,
        "args": [
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            *_families(plan),
            *(f"--service-cluster-ip-range={stack.services}" for stack in plan.stacks),
            *(f"--service-external-ip-range={stack.load_balancers}" for stack in plan.stacks),
            *_neighbours(plan),
            "--health-port=20244",
            "--v=1",
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            # Straight to the API server: it must work before Services do.
            {"name": "KUBERNETES_SERVICE_HOST", "value": plan.primary.node},
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
    if plan.six is not None:
        container["env"].append({"name": "PATH", "value": f"{_TOOLS}:{_PATH}"})
        container["volumeMounts"].append({"name": "tools", "mountPath": _TOOLS, "readOnly": True})
        pod["volumes"].append({"name": "tools", "configMap": {"name": _NAMES, "defaultMode": 0o555}})
    watched = "namespaces pods services nodes endpoints"
    return [
        *([config_map(_NAMES, NAMESPACE, {"ip6tables-restore": _RESTORE})] if plan.six else []),
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


# kube-router 2.1 makes sets of IPv6 addresses by one name and asks for them by another: without this, rules for IPv6
# that name a pod are refused, and with them all that was to be written.
_NAMES, _TOOLS = "kube-router-ipv6", "/tools"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RESTORE = """\
#!/bin/sh
sed 's/--match-set KUBE-/--match-set inet6:KUBE-/g' | /usr/sbin/ip6tables-restore "$@"
"""
# Link-local addresses, and those by which neighbours are asked for.
_WIRE = ("fe80::/10", "ff02::1:ff00:0/104")


def _neighbours(plan: Addresses) -> list[str]:
    """kube-router judges the search for neighbours as any packet of a pod: an egress policy would end all by IPv6.

    Where it happens is left out of its judgement; all else that a pod sends there the node's own rules drop.
    """
    if plan.six is None:
        return []
    gateways = (f"{plan.six.gateway_of(index)}/128" for index in range(1, MAX_NODES + 1))
    return [f"--service-external-ip-range={one}" for one in (*_WIRE, *gateways)]


def _families(plan: Addresses) -> list[str]:
    """IPv4 alone is what it does unasked."""
    four = any(stack is plan for stack in plan.stacks)
    return [] if plan.six is None else [f"--enable-ipv4={str(four).lower()}", "--enable-ipv6=true"]
