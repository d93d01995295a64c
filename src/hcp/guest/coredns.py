"""The guest's DNS."""

from __future__ import annotations

from hcp.guest.objects import SYSTEM, GuestParams, Manifest, account, cluster_role, cluster_role_binding, obj
from hcp.guest.objects import config_map as system_config_map
from hcp.guest.objects import service_account as system_account

NAME = "coredns"
LABELS = {"k8s-app": "kube-dns"}
COREFILE = """.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
"""


def objects(g: GuestParams) -> list[Manifest]:
    image = g.images.get(NAME)
    if not image:
        return []
    read = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]
    return [
        system_account(NAME),
        cluster_role("system:coredns", rules),
        cluster_role_binding("system:coredns", "system:coredns", account(NAME)),
        system_config_map(NAME, {"Corefile": COREFILE}),
        _deployment(g, image),
        _service(g),
    ]


def _service(g: GuestParams) -> Manifest:
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
    ]
    addresses = g.control_plane.dns_ips()
    spec: Manifest = {"selector": LABELS, "clusterIP": addresses[0], "ports": ports}
    if len(addresses) > 1:
        spec |= {"clusterIPs": list(addresses), "ipFamilyPolicy": "RequireDualStack"}
    return obj("v1", "Service", "kube-dns", {"spec": spec}, SYSTEM, LABELS | {"kubernetes.io/name": "CoreDNS"})


def _deployment(g: GuestParams, image: str) -> Manifest:
    container = {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["coredns", "-conf", "/etc/coredns/Corefile"],
        "resources": {"requests": {"cpu": "20m", "memory": "40Mi"}},
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181, "scheme": "HTTP"}, "periodSeconds": 2},
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080, "scheme": "HTTP"},
            "initialDelaySeconds": 60,
            "periodSeconds": 20,
            "failureThreshold": 5,
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    selector = {"matchLabels": LABELS}
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }
        ],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    metadata: Manifest = {"labels": LABELS}
    if g.trust_mark:
        metadata["annotations"] = g.trust_mark
    spec = {
        "replicas": 2 if g.highly_available else 1,
        "selector": selector,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "template": {"metadata": metadata, "spec": pod},
    }
    return obj("apps/v1", "Deployment", NAME, {"spec": spec}, SYSTEM, LABELS)
