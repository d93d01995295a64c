"""The YAML documents of the guides, with the parts in angle brackets as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ANY = ("*",)
ROLE = "kv-external-infra-role"
READER = "kv-external-infra-network-reader"
ACCOUNT = "hcp-infra-sa"

Rule = tuple[str, tuple[str, ...], tuple[str, ...]]

# What the older guide asks an infra cluster to grant in the namespace of the machines: group, resources, verbs.
OLDER_RIGHTS: tuple[Rule, ...] = (
    ("kubevirt.io", ("virtualmachines", "virtualmachines/finalizers", "virtualmachineinstances"), ANY),
    ("cdi.kubevirt.io", ("datavolumes",), ANY),
    ("", ("services",), ANY),
    ("route.openshift.io", ("routes", "routes/custom-host"), ANY),
    ("discovery.k8s.io", ("endpointslices", "endpointslices/restricted"), ANY),
    ("", ("secrets",), ANY),
    ("snapshot.storage.k8s.io", ("volumesnapshots",), ("get", "create", "delete")),
    ("", ("persistentvolumeclaims",), ("get",)),
)
# What the newer one adds to it.
NEWER_RIGHTS: tuple[Rule, ...] = (
    *OLDER_RIGHTS,
    ("networking.k8s.io", ("networkpolicies",), ANY),
    ("", ("events",), ("get", "create", "update")),
)
CLUSTER_RIGHTS: tuple[Rule, ...] = (("config.openshift.io", ("networks",), ("get",)),)


def text(*documents: Object) -> str:
    """As a file or standard input has it."""
    return yaml.safe_dump_all(documents, sort_keys=False)


def _rules(rights: Sequence[Rule]) -> list[Object]:
    return [{"apiGroups": [g], "resources": list(resources), "verbs": list(verbs)} for g, resources, verbs in rights]


def infra_role(namespace: str, rights: Sequence[Rule] = NEWER_RIGHTS) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": ROLE, "namespace": namespace},
        "rules": _rules(rights),
    }


def network_reader() -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": READER},
        "rules": _rules(CLUSTER_RIGHTS),
    }


def network_reader_binding(namespace: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{READER}-binding"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": READER},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }


def node_pool(
    cluster: str,
    namespace: str,
    *,
    name: str = "",
    cores: int = 2,
    memory: str = "16Gi",
    replicas: int = 3,
    size: str = "32Gi",
    devices: Sequence[tuple[str, int]] = (),
) -> Object:
    """The pool of the guides: it names no release; with devices it is the one with GPUs."""
    virt: Object = {
        "attachDefaultNetwork": True,
        "compute": {"cores": cores, "memory": memory},
        "networkInterfaceMultiqueue": "Enable",
        "rootVolume": {"persistent": {"size": size}, "type": "Persistent"},
    }
    if devices:
        virt["hostDevices"] = [{"count": count, "deviceName": device} for device, count in devices]
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": name or cluster, "namespace": namespace},
        "spec": {
            "arch": "amd64",
            "clusterName": cluster,
            "management": {"autoRepair": False, "upgradeType": "Replace"},
            "nodeDrainTimeout": "0s",
            "nodeVolumeDetachTimeout": "0s",
            "platform": {"kubevirt": virt, "type": "KubeVirt"},
            "replicas": replicas,
        },
    }


def apps_service(cluster: str, namespace: str, https_port: int, http_port: int) -> Object:
    """The load balancer in front of the machines, for a cluster with a base domain of its own."""
    ports = [("https-443", 443, https_port), ("http-80", 80, http_port)]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": {"app": cluster}, "name": f"{cluster}-apps", "namespace": namespace},
        "spec": {
            "ports": [
                {"name": name, "port": port, "protocol": "TCP", "targetPort": target} for name, port, target in ports
            ],
            "selector": {"kubevirt.io": "virt-launcher"},
            "type": "LoadBalancer",
        },
    }


def registry_authorities(namespace: str, name: str, certificates: dict[str, str]) -> str:
    """Registries by `name..port`. Written by hand, since the guide asks for literal blocks."""
    data = "".join(f"  {key}: |\n{_indented(pem)}" for key, pem in certificates.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n{data}"


def trust_bundle(namespace: str, certificates: Sequence[str]) -> str:
    """Several authorities in one block, each under a remark that is no PEM."""
    blocks = "\n".join(
        f"    // Registry{number} CA\n{_indented(pem)}" for number, pem in enumerate(certificates, start=1)
    )
    return (
        f"apiVersion: v1\ndata:\n  ca-bundle.crt: |\n{blocks}\nkind: ConfigMap\n"
        f"metadata:\n  name: user-ca-bundle\n  namespace: {namespace}\n"
    )


def _indented(pem: str) -> str:
    return "".join(f"    {line}\n" for line in pem.strip().splitlines())


def metallb() -> list[Object]:
    """What the bare metal guide makes for load balancer addresses."""
    version, namespace = "metallb.io/v1beta1", "metallb-system"
    return [
        {"apiVersion": version, "kind": "MetalLB", "metadata": {"name": "metallb", "namespace": namespace}},
        {
            "apiVersion": version,
            "kind": "IPAddressPool",
            "metadata": {"name": "metallb", "namespace": namespace},
            "spec": {"addresses": ["192.168.216.32-192.168.216.122"]},
        },
        {
            "apiVersion": version,
            "kind": "L2Advertisement",
            "metadata": {"name": "l2advertisement", "namespace": namespace},
            "spec": {"ipAddressPools": ["metallb"]},
        },
    ]
