"""Every controller of the operator: what it follows, what it writes, which conditions it owns.

docs/controllers.md is made of this table; tests hold that it names exactly what runs, and that each condition has one
owner.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hcp.api import conditions as c

CLUSTER, POOL = "HostedCluster", "NodePool"


@dataclass(frozen=True)
class Entry:
    """One row."""

    name: str
    room: str
    follows: str
    writes: str
    # Kind → conditions that nobody else sets there.
    owns: dict[str, tuple[str, ...]] = field(default_factory=dict)


HOSTED_CLUSTER_CONDITIONS = (
    c.AVAILABLE,
    c.CERTIFICATES_UP_TO_DATE,
    c.CLUSTER_VERSION_AVAILABLE,
    c.CLUSTER_VERSION_PROGRESSING,
    c.CLUSTER_VERSION_RELEASE_ACCEPTED,
    c.CLUSTER_VERSION_RETRIEVED_UPDATES,
    c.CLUSTER_VERSION_SUCCEEDING,
    c.CLUSTER_VERSION_UPGRADEABLE,
    c.CONFIG_OPERATOR_SUCCEEDED,
    c.CONTROL_PLANE_CONNECTION,
    c.CONTROL_PLANE_SPREAD,
    c.DATA_PLANE_CONNECTION,
    c.DEGRADED,
    c.ETCD_AVAILABLE,
    c.ETCD_ENCRYPTION_UP_TO_DATE,
    c.ETCD_SNAPSHOT_RESTORED,
    c.EXTERNAL_DNS_REACHABLE,
    c.FIELDS_HONOURED,
    c.HIBERNATING,
    c.HOSTED_CLUSTER_DESTROYED,
    c.RESTORED_FROM_BACKUP,
    c.IGNITION_ENDPOINT_AVAILABLE,
    c.INFRASTRUCTURE_READY,
    c.KUBEVIRT_LIVE_MIGRATABLE,
    c.KUBE_APISERVER_AVAILABLE,
    c.PLATFORM_CREDENTIALS_FOUND,
    c.PROGRESSING,
    c.RECONCILIATION_ACTIVE,
    c.RECONCILIATION_SUCCEEDED,
    c.STORAGE_AVAILABLE,
    c.STORAGE_VERSIONS_UP_TO_DATE,
    c.SUPPORTED_HOSTED_CLUSTER,
    c.UNMANAGED_ETCD_AVAILABLE,
    c.VALID_CONFIGURATION,
    c.VALID_HCP_CONFIGURATION,
    c.VALID_IDP_CONFIGURATION,
    c.VALID_KUBEVIRT_MTU,
    c.VALID_PROXY_CONFIGURATION,
    c.VALID_RELEASE_IMAGE,
    c.VALID_RELEASE_INFO,
)
NODE_POOL_CONDITIONS = (
    c.ALL_MACHINES_READY,
    c.ALL_NODES_HEALTHY,
    c.AUTOREPAIR_ENABLED,
    c.AUTOSCALING_ENABLED,
    c.CIDR_CONFLICT,
    c.FIELDS_HONOURED,
    c.IGNITION_ENDPOINT_AVAILABLE,
    c.KUBEVIRT_LIVE_MIGRATABLE,
    c.NODES_UNDER_EVACUATION,
    c.NODES_UNDER_REPAIR,
    c.REACHED_IGNITION_ENDPOINT,
    c.READY,
    c.RECONCILIATION_ACTIVE,
    c.RECONCILIATION_SUCCEEDED,
    c.SUPPORTED_VERSION_SKEW,
    c.UPDATE_MANAGEMENT_ENABLED,
    c.UPDATING_CONFIG,
    c.UPDATING_MACHINE_TEMPLATE,
    c.UPDATING_VERSION,
    c.VALID_ARCH_PLATFORM,
    c.VALID_GENERATED_PAYLOAD,
    c.VALID_MACHINE_CONFIG,
    c.VALID_MACHINE_TEMPLATE,
    c.VALID_PLATFORM_CONFIG,
    c.VALID_PLATFORM_IMAGE,
    c.VALID_RELEASE_IMAGE,
    c.VALID_TUNING_CONFIG,
)
ISOLATION_CONDITIONS = (c.VALID_KUBEVIRT_NETPOL_RBAC, c.VALID_NODE_PORT_ADDRESSES)

CONTROLLERS = (
    Entry(
        "hostedcluster",
        "hostedcluster",
        "HostedClusters; what it made in hosted namespaces; Secrets and ConfigMaps beside HostedClusters; NodePools, "
        "Nodes, StorageClasses, mirror sets, image and ingress settings; the bootstrap server",
        "the hosted namespace and all in it, the user's kubeconfigs, ControlPlaneComponents, the status of "
        "HostedClusters",
        {CLUSTER: HOSTED_CLUSTER_CONDITIONS},
    ),
    Entry(
        "guest",
        "guest",
        "inside each guest: its Nodes, our DaemonSets, Deployments and StatefulSets, the konnectivity agents, the API "
        "of metrics, and whether there is any NetworkPolicy; asks the published address and the tunnel",
        "the parts inside guests; after a new minor all that guests store, anew, and in the hosted namespace ConfigMap "
        "`storage-migration`",
    ),
    Entry("etcd", "hostedcluster", "asks each etcd how full it is", "compaction and defragmentation of etcd"),
    Entry(
        "etcd-members",
        "hostedcluster",
        "nothing: takes what a pass of `hostedcluster` found; while a member is missing or their number changes, asks "
        "each member and lists their pods",
        "members of etcd, and ConfigMap `etcd-members` after they have founded it; deletes pods and claims of members "
        "that are replaced or gone",
    ),
    Entry(
        "cluster-version",
        "guest",
        "nothing: takes what a pass of `hostedcluster` found, and looks for drift every five minutes",
        "in guests with nodes: the kinds of config.openshift.io, ClusterVersion, ClusterOperators and settings, and "
        "the policy that nobody else changes them; nothing in the management cluster",
    ),
    Entry(
        "nodepool",
        "nodepool",
        "NodePools, HostedClusters, ConfigMaps and Secrets they name, what it made, Machines and KubevirtMachines; "
        "Nodes of platform None, through `nodes`",
        "token and user data Secrets, node documents, KubevirtMachineTemplates, MachineDeployments, "
        "MachineHealthChecks, NodeRepairTemplates, boot image caches, the status of NodePools",
        {POOL: NODE_POOL_CONDITIONS},
    ),
    Entry(
        "ignition-certificates",
        "ignition",
        "HostedClusters and the Routes of the bootstrap server",
        "authority and serving certificate of the bootstrap server, and its Service on node ports while a hosted "
        "cluster asks for it",
    ),
    Entry(
        "vm-isolation",
        "kubevirt",
        "HostedClusters, their Services, NetworkPolicies, and networks and nodes of the management cluster",
        "the NetworkPolicy of virtual machines, where they run",
        {CLUSTER: ISOLATION_CONDITIONS},
    ),
    Entry(
        "guest-sessions",
        "guest",
        "HostedClusters, NodePools, hosted namespaces",
        "nothing: begins and ends what the next five follow",
    ),
    Entry(
        "node-certificates",
        "guest",
        "inside guests: CertificateSigningRequests; Machines and VirtualMachineInstances, on platform None Nodes and "
        "NodePools",
        "approvals and denials inside guests",
    ),
    Entry("nodes", "guest", "inside guests: Nodes; Machines, NodePools", "labels and taints of Nodes inside guests"),
    Entry(
        "lost-nodes",
        "guest",
        "inside guests with storage: Nodes; VirtualMachineInstances and their pods; asks for the pod of the storage "
        "driver while a node comes back",
        "taint `out-of-service` and condition `Ready` of Nodes whose machine has ended; removes pods with volumes from "
        "them",
    ),
    Entry(
        "load-balancers",
        "kubevirt",
        "inside guests: Services of type LoadBalancer; Services, EndpointSlices, VirtualMachineInstances and their "
        "pods where machines run; annotations of HostedClusters",
        "Services and EndpointSlices where machines run; finalizer and status of Services inside guests",
    ),
    Entry(
        "node-repairs",
        "kubevirt",
        "NodeRepairs, Machines, MachineHealthChecks, NodePools, HostedClusters; inside guests: Nodes; "
        "VirtualMachineInstances",
        "ends VirtualMachineInstances, deletes Machines, notes restarts on Machines, the status of NodeRepairs",
    ),
    Entry(
        "evacuations",
        "kubevirt",
        "VirtualMachineInstances, Machines, NodePools, HostedClusters; VirtualMachineInstanceMigrations of namespaces "
        "where machines have to leave their infra node",
        "VirtualMachineInstanceMigrations; marks and deletes Machines",
    ),
    Entry(
        "machine-sleep",
        "kubevirt",
        "HostedClusters that fall asleep or wake up; Cluster API's Clusters, VirtualMachineInstances; inside guests "
        "that wake up: Nodes",
        "the run strategy of VirtualMachines; ends VirtualMachineInstances",
    ),
    Entry(
        "cluster-api",
        "operator",
        "its two Deployments and their Secret in the operator's namespace",
        "the same; not where a management cluster has its own Cluster API",
    ),
)


def table() -> str:
    """The table as the documentation has it."""
    rows = ["| controller | package | follows | writes | owns the conditions |", "|---|---|---|---|---|"]
    for entry in CONTROLLERS:
        owned = "; ".join(f"{kind}: {', '.join(f'`{x}`' for x in kinds)}" for kind, kinds in entry.owns.items())
        rows.append(f"| `{entry.name}` | `{entry.room}` | {entry.follows} | {entry.writes} | {owned or 'none'} |")
    return "\n".join(rows) + "\n"
