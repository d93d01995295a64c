"""Accounts and rights of the two upstream managers. The operator starts them, since it carries their images."""

from __future__ import annotations

from hcp.api.manifests import (
    ALL,
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

CORE = "cluster-api"
PROVIDER = "capi-provider"


def core_rules() -> list[Object]:
    """Cluster API watches all hosted namespaces; the nodes it drains are the guests', through their kubeconfigs."""
    return [
        rule("cluster.x-k8s.io", "*", ["*"]),
        rule("infrastructure.cluster.x-k8s.io", "*", ["*"]),
        rule("bootstrap.cluster.x-k8s.io", "*", ["*"]),
        rule("controlplane.cluster.x-k8s.io", "*", ["*"]),
        rule("addons.cluster.x-k8s.io", "*", ["*"]),
        rule("ipam.cluster.x-k8s.io", "*", ["*"]),
        rule("runtime.cluster.x-k8s.io", "*", ["*"]),
        rule("hypershift.openshift.io", "hostedcontrolplanes", [*READ, "update", "patch", "delete"]),
        rule("hypershift.openshift.io", "hostedcontrolplanes/status", ["get"]),
        rule("apiextensions.k8s.io", "customresourcedefinitions", READ),
        rule("", "namespaces configmaps", READ),
        rule("", "secrets", [*READ, "create", "update", "patch"]),
        rule("", "events", ["create", "patch"]),
        rule("events.k8s.io", "events", ["create", "patch"]),
        rule("authentication.k8s.io", "tokenreviews", ["create"]),
        rule("authorization.k8s.io", "subjectaccessreviews", ["create"]),
    ]


def provider_rules() -> list[Object]:
    """The KubeVirt provider makes virtual machines, their disks and their user data."""
    return [
        rule("infrastructure.cluster.x-k8s.io", "*", ["*"]),
        rule("cluster.x-k8s.io", "clusters clusters/status machines machines/status", READ),
        rule("cluster.x-k8s.io", "machinesets machinedeployments", READ),
        rule("kubevirt.io", "virtualmachines virtualmachineinstances", ALL),
        rule("cdi.kubevirt.io", "datavolumes", ALL),
        rule("cdi.kubevirt.io", "datavolumes/source", ["*"]),
        rule("", "secrets services", ALL),
        rule("", "persistentvolumeclaims pods namespaces configmaps", READ),
        rule("", "events", ["create", "patch"]),
        rule("authentication.k8s.io", "tokenreviews", ["create"]),
        rule("authorization.k8s.io", "subjectaccessreviews", ["create"]),
    ]


def objects(options: Options) -> list[Object]:
    election = [
        rule("coordination.k8s.io", "leases", [*READ, "create", "update", "patch", "delete"]),
        rule("", "events", ["create", "patch"]),
    ]
    found: list[Object] = []
    for name, rules in ((CORE, core_rules()), (PROVIDER, provider_rules())):
        subject = account(name, options.namespace)
        found += [
            service_account(name, options.namespace, pull_secrets(options)),
            cluster_role(f"hypershift-{name}", rules),
            cluster_binding(f"hypershift-{name}", subject),
            role(name, options.namespace, election),
            binding(name, options.namespace, subject),
        ]
    return found
