"""CoreDNS: cluster names, the registry's name, and every apps domain by rule."""

from __future__ import annotations

from hcp.api.manifests import Object, account, cluster_binding, cluster_role, config_map, rule, service_account
from hcp.local.addons.objects import workload
from hcp.local.addons.waiting import CONTROL_PLANE_LABEL
from hcp.local.network.addresses import DNS_ZONE, IPV6, REGISTRY_HOST, Addresses

NAMESPACE = "kube-system"
LABELS = {"k8s-app": "kube-dns"}


def corefile(plan: Addresses, *, forward: bool) -> str:
    outside = "    forward . /etc/resolv.conf\n" if forward else ""
    return f"""\
.:53 {{
    errors
    health :8080 {{
        lameduck 2s
    }}
    ready :8181
{_apps(plan)}    hosts {{
        {plan.primary.registry} {REGISTRY_HOST}
        fallthrough
    }}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
{outside}    cache 30
    loadbalance
}}
"""


def _apps(plan: Addresses) -> str:
    """The apps domain carries its address in its name, so no cluster has to know another one's.

    Its other address, where there are two, only its own cluster knows. What a family lacks is answered empty.
    """
    four = _template("A", r"(?P<a>\d+)-(?P<b>\d+)-(?P<c>\d+)-(?P<d>\d+)", ".".join(map(_group, "abcd")))
    if plan.six is None:
        return four + _NONE.format(kind="AAAA")
    six = _template("AAAA", r"fd68-6370-(?P<n>\d+)-1--40", f"fd68:6370:{_group('n')}:1::40")
    if plan.family == IPV6:
        return six + _NONE.format(kind="A")
    own = plan.apps_domain.removeprefix("apps.").removesuffix(f".{DNS_ZONE}")
    return four + six + _template("AAAA", own, plan.six.router) + _NONE.format(kind="AAAA")


_NONE = f"""\
    template IN {{kind}} {DNS_ZONE} {{{{
        rcode NOERROR
    }}}}
"""


def _group(name: str) -> str:
    return f"{{{{ .Group.{name} }}}}"


def _template(kind: str, label: str, address: str) -> str:
    zone = DNS_ZONE.replace(".", r"\.")
    return f"""\
    template IN {kind} {DNS_ZONE} {{
        match "(^|.*\\.)apps\\.{label}\\.{zone}\\.$"
        answer "{{{{ .Name }}}} 60 IN {kind} {address}"
        fallthrough
    }}
"""


def objects(plan: Addresses, image: str, *, forward: bool) -> list[Object]:
    text = corefile(plan, forward=forward)
    return [
        service_account("coredns", NAMESPACE),
        cluster_role(
            "system:coredns",
            [
                rule("", "services pods namespaces", ["list", "watch"]),
                rule("discovery.k8s.io", "endpointslices", ["list", "watch"]),
            ],
        ),
        cluster_binding("system:coredns", account("coredns", NAMESPACE)),
        config_map("coredns", NAMESPACE, {"Corefile": text}),
        _deployment(image, text),
        _service(plan),
    ]


def _deployment(image: str, text: str) -> Object:
    import hashlib

    container: Object = {
        "name": "coredns",
        "image": image,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 30},
        "resources": {"requests": {"cpu": "20m", "memory": "30Mi"}, "limits": {"memory": "200Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod: Object = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        # Beside the API server, whose loss is the cluster's anyway: another node that goes takes no names with it.
        "nodeSelector": {CONTROL_PLANE_LABEL: ""},
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
        },
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    made = workload("Deployment", "coredns", NAMESPACE, LABELS, pod)
    # A changed Corefile must reach the pod; the reload plugin would take half a minute to notice.
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    made["spec"]["template"]["metadata"]["annotations"] = {"hcp.local/config": digest}
    return made


def _service(plan: Addresses) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "clusterIP": plan.primary.dns,
            **_both(plan),
            "selector": LABELS,
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
            ],
        },
    }


def _both(plan: Addresses) -> Object:
    """An address of each family, where there are two."""
    if len(plan.stacks) == 1:
        return {}
    return {"clusterIPs": [stack.dns for stack in plan.stacks], "ipFamilyPolicy": "RequireDualStack"}
