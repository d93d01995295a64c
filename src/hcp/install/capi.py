"""Accounts and rights of the two upstream managers. The operator starts them, since it carries their images.

Their caches list all namespaces, so what they cache they may read everywhere: machines and clusters, which hold no
secrets. Virtual machines they ask for one by one, and our builds of them Secrets too; official builds follow Secrets,
and get those of hosted namespaces from a program that stands before them. So for both a RoleBinding in each hosted
namespace is enough, and one more for official builds.
"""

from __future__ import annotations

from hcp.api import names
from hcp.api.manifests import (
    READ,
    Object,
    account,
    binding,
    cluster_binding,
    cluster_role,
    role,
    rule,
    service_account,
)
from hcp.install.base import pull_secrets
from hcp.install.options import Options

CORE, PROVIDER = names.CAPI_CORE, names.CAPI_PROVIDER
FOLLOW = ("list", "watch")


def core_rules() -> list[Object]:
    """Cluster API follows its own kinds everywhere; the nodes it drains are the guests', by their kubeconfigs."""
    kinds = ("clusters", "machines", "machinesets", "machinedeployments", "machinehealthchecks")
    return [
        rule("cluster.x-k8s.io", " ".join(kinds), [*FOLLOW, "patch"]),
        rule("cluster.x-k8s.io", "machines machinesets", ["create", "delete"]),
        rule("cluster.x-k8s.io", "machinedrainrules", FOLLOW),  # read before a node is drained
        rule("cluster.x-k8s.io", " ".join(f"{kind}/status" for kind in kinds), ["patch"]),
        # Where the API server asks it of whoever names an owner that must not go first, as OpenShift does.
        rule("cluster.x-k8s.io", " ".join(f"{kind}/finalizers" for kind in kinds[:-1]), ["update"]),
        rule(
            "infrastructure.cluster.x-k8s.io",
            "kubevirtclusters kubevirtmachines kubevirtmachinetemplates",
            [*FOLLOW, "patch"],
        ),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtmachines", ["create", "delete"]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtclusters", ["delete"]),
        rule("hypershift.openshift.io", "hostedcontrolplanes", [*FOLLOW, "patch", "delete"]),
        *repair_rules(),
        rule("apiextensions.k8s.io", "customresourcedefinitions", FOLLOW),
        rule("", "events", ["create", "patch"]),
    ]


def repair_rules() -> list[Object]:
    """The health check reads a pool's template of requests, makes one for a sick node, and takes it back."""
    return [
        rule("hypershift.openshift.io", "noderepairtemplates", FOLLOW),
        rule("hypershift.openshift.io", "noderepairs", [*FOLLOW, "create", "delete"]),
    ]


def core_hosted_rules() -> list[Object]:
    """In each hosted namespace: the kubeconfig of the guest."""
    return [rule("", "secrets", ["get"])]


def follower_rules() -> list[Object]:
    """In each hosted namespace, where the operator's managers are official builds."""
    return [rule("", "secrets", FOLLOW)]


def provider_rules() -> list[Object]:
    """The KubeVirt provider follows its own kinds and the machines they are for, everywhere."""
    return [
        rule("infrastructure.cluster.x-k8s.io", "kubevirtclusters kubevirtmachines", FOLLOW),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtmachines kubevirtmachines/status", ["patch"]),
        rule("cluster.x-k8s.io", "clusters machines", FOLLOW),
    ]


def provider_hosted_rules() -> list[Object]:
    """In each hosted namespace: virtual machines, their disks, their user data, and the kubeconfigs it works with."""
    return [
        rule("kubevirt.io", "virtualmachines", ["get", "create", "delete"]),
        # They end with their VirtualMachine. Where infra nodes are drained, ending one is the operator's to decide:
        # official builds would do it without draining its node in the guest.
        rule("kubevirt.io", "virtualmachineinstances", ["get"]),
        rule("cdi.kubevirt.io", "datavolumes", ["get"]),
        rule("", "secrets", ["get", "create", "update", "delete"]),
    ]


def objects(options: Options) -> list[Object]:
    election = [
        rule("coordination.k8s.io", "leases", [*READ, "create", "update", "patch", "delete"]),
        rule("", "events", ["create", "patch"]),
    ]
    found: list[Object] = []
    for name, rules, hosted in (
        (CORE, core_rules(), core_hosted_rules()),
        (PROVIDER, provider_rules(), provider_hosted_rules()),
    ):
        subject = account(name, options.namespace)
        found += [
            service_account(name, options.namespace, pull_secrets(options)),
            cluster_role(f"hypershift-{name}", rules),
            cluster_binding(f"hypershift-{name}", subject),
            # Bound by the operator, in hosted namespaces alone.
            cluster_role(names.hosted_role(name), hosted),
            role(name, options.namespace, election),
            binding(name, options.namespace, subject),
        ]
    return [*found, cluster_role(names.SECRET_FOLLOWERS, follower_rules()), _for_another_manager()]


def _for_another_manager() -> Object:
    """Where a management cluster has a Cluster API of its own: its manager collects roles with this label."""
    made = cluster_role("hypershift-node-repairs", repair_rules())
    made["metadata"]["labels"] = {"cluster.x-k8s.io/aggregate-to-manager": "true"}
    return made
