"""What the operator may do. It must hold every right that it hands out in the Roles it makes."""

from __future__ import annotations

from hcp.api.manifests import (
    ALL,
    READ,
    Object,
    account,
    binding,
    cluster_binding,
    cluster_role,
    group,
    role,
    rule,
    service_account,
)
from hcp.install.base import pull_secrets
from hcp.install.options import Options

NAME = "hypershift-operator"
ACCOUNT = "operator"


def operator_rules() -> list[Object]:
    """Rights in all namespaces: hosted namespaces come and go, and VMs may be in any of them."""
    return [
        # Our own kinds.
        rule("hypershift.openshift.io", "*", ["*"]),
        # What a hosted control plane consists of.
        rule("", "namespaces secrets configmaps services serviceaccounts persistentvolumeclaims", ALL),
        rule("", "pods endpoints", ALL),
        rule("", "pods/log", ["get"]),
        rule("", "pods/eviction", ["create"]),
        rule("", "events", [*READ, "create", "update", "patch"]),
        rule("events.k8s.io", "events", [*READ, "create", "update", "patch"]),
        rule("", "nodes persistentvolumes", READ),
        rule("apps", "deployments statefulsets daemonsets replicasets", ALL),
        rule("batch", "jobs cronjobs", ALL),
        rule("policy", "poddisruptionbudgets", ALL),
        rule("networking.k8s.io", "networkpolicies ingresses", ALL),
        rule("networking.k8s.io", "servicecidrs", READ),
        rule("discovery.k8s.io", "endpointslices endpointslices/restricted", ALL),
        rule("route.openshift.io", "routes routes/custom-host routes/status", ALL),
        rule("rbac.authorization.k8s.io", "roles rolebindings", ALL),
        rule("coordination.k8s.io", "leases", ALL),
        rule("scheduling.k8s.io", "priorityclasses", READ),
        rule("storage.k8s.io", "storageclasses csidrivers csinodes volumeattachments", READ),
        rule("snapshot.storage.k8s.io", "volumesnapshotclasses", READ),
        rule("snapshot.storage.k8s.io", "volumesnapshots", [*READ, "create", "update", "patch", "delete"]),
        # Machines. The definitions of these kinds are carried in the operator's image.
        rule("apiextensions.k8s.io", "customresourcedefinitions", [*READ, "create", "update", "patch"]),
        rule("cluster.x-k8s.io", "*", ["*"]),
        rule("infrastructure.cluster.x-k8s.io", "*", ["*"]),
        rule("ipam.cluster.x-k8s.io", "*", ["*"]),
        # Virtual machines and their disks.
        rule("kubevirt.io", "virtualmachines virtualmachineinstances virtualmachines/finalizers", ["*"]),
        rule("kubevirt.io", "virtualmachineinstancemigrations", ALL),
        rule("kubevirt.io", "kubevirts", READ),
        rule("cdi.kubevirt.io", "datavolumes datavolumes/source", ["*"]),
        rule("cdi.kubevirt.io", "cdis storageprofiles datasources", READ),
        rule(
            "subresources.kubevirt.io",
            "virtualmachines/addvolume virtualmachines/removevolume "
            "virtualmachineinstances/addvolume virtualmachineinstances/removevolume",
            ["update"],
        ),
        rule("k8s.cni.cncf.io", "network-attachment-definitions", READ),
        # How the management cluster is set up.
        rule("config.openshift.io", "*", READ),
        rule("operator.openshift.io", "imagecontentsourcepolicies ingresscontrollers networks", READ),
        rule("cluster.open-cluster-management.io", "managedclusters", READ),
        rule("monitoring.coreos.com", "servicemonitors podmonitors prometheusrules", ALL),
        # Whether user ids are handed out by the cluster, and running with one of them.
        rule("security.openshift.io", "securitycontextconstraints", [*READ, "use"]),
    ]


def objects(options: Options) -> list[Object]:
    operator = account(ACCOUNT, options.namespace)
    leases = [
        rule("coordination.k8s.io", "leases", ["get", "create", "update", "patch"]),
        rule("", "events", ["create", "patch"]),
    ]
    found = [
        service_account(ACCOUNT, options.namespace, pull_secrets(options)),
        cluster_role(NAME, operator_rules()),
        cluster_binding(NAME, operator),
        role(NAME, options.namespace, leases),
        binding(NAME, options.namespace, operator),
    ]
    if options.admin_rbac:
        found += admin_objects(options)
    return found


def admin_objects(options: Options) -> list[Object]:
    """Groups that may use hosted clusters, or only look at them."""
    kinds = "hostedclusters nodepools"
    client = [
        rule("hypershift.openshift.io", f"{kinds} nodepools/scale", ALL),
        rule("", "secrets configmaps namespaces", [*READ, "create", "update", "patch"]),
    ]
    reader = [
        rule("hypershift.openshift.io", f"{kinds} hostedcontrolplanes controlplanecomponents", READ),
        rule("cluster.x-k8s.io", "*", READ),
        rule("infrastructure.cluster.x-k8s.io", "*", READ),
    ]
    return [
        service_account("hypershift-client", options.namespace),
        cluster_role("hypershift-client", client),
        cluster_binding("hypershift-client", account("hypershift-client", options.namespace)),
        cluster_role("hypershift-readers", reader),
        cluster_binding("hypershift-readers", group("hypershift-readers")),
    ]
