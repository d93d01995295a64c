"""What the operator may do. It must hold every right that it hands out in the Roles it makes."""

from __future__ import annotations

from hcp.api import names
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
from hcp.install import privileges
from hcp.install.base import pull_secrets
from hcp.install.options import Options

NAME = "hypershift-operator"
ACCOUNT = "operator"
FOLLOW = ("list", "watch")
# Who works in hosted namespaces by a role that the operator binds there.
WORKERS = (names.CAPI_CORE, names.CAPI_PROVIDER, names.CSI_ACCOUNT, names.AUTOSCALER)
HOSTED_ROLES = [*(names.hosted_role(account) for account in WORKERS), names.SECRET_FOLLOWERS]


def operator_rules() -> list[Object]:
    """Rights in all namespaces: hosted namespaces come and go, and their objects are followed by label everywhere.

    Nothing is here for later: a test holds these rules against what the operator asks for.
    """
    write = ["create", "patch"]
    return [
        # Our own kinds.
        rule("hypershift.openshift.io", "hostedclusters", [*FOLLOW, "patch"]),
        rule("hypershift.openshift.io", "nodepools", [*FOLLOW, "patch", "delete"]),
        rule("hypershift.openshift.io", "hostedcontrolplanes", [*FOLLOW, *write, "delete"]),
        rule("hypershift.openshift.io", "controlplanecomponents", [*FOLLOW, *write]),
        rule("hypershift.openshift.io", "noderepairs", [*FOLLOW, "delete"]),
        rule("hypershift.openshift.io", "noderepairtemplates", [*FOLLOW, *write, "delete"]),
        rule(
            "hypershift.openshift.io",
            "hostedclusters/status nodepools/status hostedcontrolplanes/status noderepairs/status",
            ["patch"],
        ),
        # Where the API server asks it of whoever names an owner that must not go first, as OpenShift does.
        rule("hypershift.openshift.io", "hostedclusters/finalizers hostedcontrolplanes/finalizers", ["update"]),
        privileges.operator_rule(),
        # What a hosted control plane consists of.
        rule("", "namespaces secrets", [*READ, *write, "delete"]),
        rule("", "configmaps", [*READ, *write]),
        rule("", "services", [*READ, *write, "delete"]),
        rule("", "pods", [*FOLLOW, "delete"]),
        # The one that pods run as which import boot disks: they get the cluster's pull secret.
        rule("", "serviceaccounts", FOLLOW),
        {**rule("", "serviceaccounts", ["get", "patch"]), "resourceNames": ["default"]},
        # Those that the storage driver and the autoscaler of a hosted cluster run as.
        rule("", "serviceaccounts", ["create"]),
        {**rule("", "serviceaccounts", ["patch"]), "resourceNames": [names.CSI_ACCOUNT, names.AUTOSCALER]},
        # Volumes of members that etcd does not have any more are deleted.
        rule("", "persistentvolumeclaims", ["get", *write, "delete"]),
        rule("", "events", write),
        rule("", "resourcequotas", [*FOLLOW, *write]),
        rule("", "nodes", FOLLOW),
        rule("apps", "deployments statefulsets", [*FOLLOW, *write, "delete"]),
        rule("policy", "poddisruptionbudgets", [*FOLLOW, *write]),
        rule("networking.k8s.io", "networkpolicies", [*FOLLOW, *write]),
        rule("monitoring.coreos.com", "podmonitors", [*FOLLOW, *write]),
        rule("networking.k8s.io", "servicecidrs", FOLLOW),
        rule("discovery.k8s.io", "endpointslices", [*FOLLOW, *write, "delete"]),
        rule("discovery.k8s.io", "endpointslices/restricted", ["create"]),
        rule("route.openshift.io", "routes", [*FOLLOW, *write]),
        rule("route.openshift.io", "routes/custom-host", ["create", "update"]),
        rule("rbac.authorization.k8s.io", "rolebindings", [*FOLLOW, *write]),
        # Without holding what these roles give.
        {**rule("rbac.authorization.k8s.io", "clusterroles", ["bind"]), "resourceNames": HOSTED_ROLES},
        rule("storage.k8s.io", "storageclasses", FOLLOW),
        rule("snapshot.storage.k8s.io", "volumesnapshotclasses", FOLLOW),
        rule("cdi.kubevirt.io", "storageprofiles", FOLLOW),
        # Machines. The definitions of these kinds are carried in the operator's image.
        rule("apiextensions.k8s.io", "customresourcedefinitions", [*FOLLOW, *write]),
        rule("cluster.x-k8s.io", "clusters machinedeployments machinehealthchecks", [*FOLLOW, *write, "delete"]),
        rule("cluster.x-k8s.io", "clusters", ["get"]),
        rule("cluster.x-k8s.io", "machines", [*FOLLOW, "patch", "delete"]),
        rule("cluster.x-k8s.io", "machinesets", [*FOLLOW, "delete"]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtclusters", [*FOLLOW, *write]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtclusters/status", ["patch"]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtmachines", [*FOLLOW, "patch", "delete"]),
        rule("infrastructure.cluster.x-k8s.io", "kubevirtmachinetemplates", [*FOLLOW, *write, "delete"]),
        # Virtual machines and their disks.
        rule("kubevirt.io", "virtualmachines", ["get", "list", "patch", "delete"]),
        rule("kubevirt.io", "virtualmachineinstances", [*FOLLOW, "delete"]),
        # Machines are moved off infra nodes that are drained.
        rule("kubevirt.io", "virtualmachineinstancemigrations", [*FOLLOW, "create"]),
        rule("kubevirt.io", "kubevirts", ["list"]),
        rule("cdi.kubevirt.io", "datavolumes", ["list", "create", "delete"]),
        # How the management cluster is set up.
        rule("config.openshift.io", "ingresses images networks imagedigestmirrorsets imagetagmirrorsets", FOLLOW),
        rule("operator.openshift.io", "imagecontentsourcepolicies", FOLLOW),
    ]


def own_rules(options: Options) -> list[Object]:
    """Rights in the operator's own namespace: who leads. Those that share announce themselves, and take that back."""
    verbs = ["get", *FOLLOW, "create", "update", *(["delete"] if options.shards > 1 else [])]
    return [rule("coordination.k8s.io", "leases", verbs)]


def objects(options: Options) -> list[Object]:
    operator = account(ACCOUNT, options.namespace)
    found = [
        service_account(ACCOUNT, options.namespace, pull_secrets(options)),
        cluster_role(NAME, operator_rules()),
        cluster_binding(NAME, operator),
        role(NAME, options.namespace, own_rules(options)),
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
        rule("hypershift.openshift.io", f"{kinds} hostedcontrolplanes controlplanecomponents noderepairs", READ),
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
