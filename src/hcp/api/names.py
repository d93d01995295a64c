"""Every fixed name of the API, and the rules by which names are made.

Both the command line and the operator read them here, so a name is spelled once. The command line loads this
module on its fastest path: it must not import anything beyond the interpreter's own start-up set.
"""

from __future__ import annotations

from os import urandom

from hcp.errors import HcpError

GROUP = "hypershift.openshift.io"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

# Where OpenShift keeps what its cluster-wide settings refer to.
CONFIG_NAMESPACE = "openshift-config"
OPERATOR_NAMESPACE = "hypershift"
DEFAULT_NAMESPACE = "clusters"
ROUTER_NAMESPACE = "openshift-ingress"

# What images are called where they are built, and on the disks of nodes; embedded clusters have it under this name.
BUILD_REGISTRY = "registry.hcp.test:5000"

FINALIZER = f"{GROUP}/finalizer"

# Server-side apply field managers that the established command line uses.
CLI_FIELD_MANAGER = "hypershift-cli"
INSTALL_FIELD_MANAGER = "hypershift"

# Labels
LABEL_SAFE_TO_DELETE = f"{GROUP}/safe-to-delete-with-cluster"
LABEL_AUTO_CREATED = f"{GROUP}/auto-created-for-infra"
LABEL_SUPPORTED_VERSIONS = f"{GROUP}/supported-versions"
# On what the operator brought along for itself, such as Cluster API's definitions.
LABEL_MANAGED_BY = f"{GROUP}/managed-by"
MANAGED_BY = "hcp"
LABEL_COMPONENT = f"{GROUP}/component"
LABEL_MONITORING = f"{GROUP}/monitoring"
# Which part of a control plane a pod is.
LABEL_CONTROL_PLANE_COMPONENT = f"{GROUP}/control-plane-component"
LABEL_INFRA_ID = f"{GROUP}/infra-id"
LABEL_NODEPOOL = f"{GROUP}/nodePool"
LABEL_NODEPOOL_NAME = f"{GROUP}/nodepool-name"
LABEL_CONTROL_PLANE_NAMESPACE = f"{GROUP}/hosted-control-plane"
# With the name of its source, as operator-lifecycle-manager marks the pods of a catalog.
LABEL_CATALOG = "olm.catalogSource"
# On pods of a control plane that have to talk to the management cluster's API; all others cannot.
LABEL_NEED_MANAGEMENT_API = f"{GROUP}/need-management-kas-access"
LABEL_KUBEVIRT_RHCOS = f"{GROUP}/is-kubevirt-rhcos"
LABEL_CAPI_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"

# Annotations
ANNOTATION_CLUSTER = f"{GROUP}/cluster"
# Which HostedCluster a hosted namespace was made for; a name could be chosen to meet any namespace.
ANNOTATION_CLUSTER_UID = f"{GROUP}/cluster-uid"
ANNOTATION_NODEPOOL = f"{GROUP}/nodePool"
# Which configuration (a hash of it) the machines of a NodePool have.
ANNOTATION_CURRENT_CONFIG_VERSION = f"{GROUP}/nodePoolCurrentConfigVersion"
MARK_CURRENT_CONFIG = f"{GROUP}/nodePoolCurrentConfig"
MARK_CURRENT_TEMPLATE = f"{GROUP}/nodePoolPlatformMachineTemplate"
MARK_TARGET_CONFIG_VERSION = f"{GROUP}/nodePoolTargetConfigVersion"
ANNOTATION_CLEANUP_CLOUD = f"{GROUP}/cleanup-cloud-resources"
ANNOTATION_DESTROY_GRACE = f"{GROUP}/destroy-grace-period"
# On a HostedCluster or NodePool that is being deleted: do not wait any longer for an infra cluster nobody can ask.
ANNOTATION_SKIP_INFRA_CLEANUP = f"{GROUP}/skip-infra-cleanup"
ANNOTATION_SKIP_DELETE_NAMESPACE = f"{GROUP}/skip-delete-hosted-controlplane-namespace"
ANNOTATION_SKIP_RELEASE_VALIDATION = f"{GROUP}/skip-release-image-validation"
ANNOTATION_FORCE_UPGRADE_TO = f"{GROUP}/force-upgrade-to"
ANNOTATION_DISABLE_PKI = f"{GROUP}/disable-pki-reconciliation"
ANNOTATION_RESTART_DATE = f"{GROUP}/restart-date"
ANNOTATION_RELEASE_VERSION = f"{GROUP}/release-version"
ANNOTATION_CONTROL_PLANE_OPERATOR_IMAGE = f"{GROUP}/control-plane-operator-image"
ANNOTATION_CAPI_MANAGER_IMAGE = f"{GROUP}/capi-manager-image"
ANNOTATION_CAPI_KUBEVIRT_IMAGE = f"{GROUP}/capi-provider-kubevirt-image"
ANNOTATION_AUTOSCALER_IMAGE = f"{GROUP}/cluster-autoscaler-image"
ANNOTATION_KONNECTIVITY_SERVER_IMAGE = f"{GROUP}/konnectivity-server-image"
ANNOTATION_KONNECTIVITY_AGENT_IMAGE = f"{GROUP}/konnectivity-agent-image"
ANNOTATION_HAPROXY_IMAGE = f"{GROUP}/haproxy-image"
ANNOTATION_IMAGE_OVERRIDES = f"{GROUP}/image-overrides"
ANNOTATION_CONTROL_PLANE_PRIORITY = f"{GROUP}/control-plane-priority-class"
ANNOTATION_API_CRITICAL_PRIORITY = f"{GROUP}/api-critical-priority-class"
ANNOTATION_ETCD_PRIORITY = f"{GROUP}/etcd-priority-class"
ANNOTATION_TOPOLOGY = f"{GROUP}/topology"
ANNOTATION_DISABLE_MACHINE_MANAGEMENT = f"{GROUP}/disable-machine-management"
ANNOTATION_DISABLE_IGNITION_SERVER = f"{GROUP}/disable-ignition-server"
ANNOTATION_DISABLE_AUTOSCALER = f"{GROUP}/disable-cluster-autoscaler"
ANNOTATION_POD_SECURITY = f"{GROUP}/pod-security-admission-label-override"
ANNOTATION_VM_JSON_PATCH = f"{GROUP}/kubevirt-vm-jsonpatch"
ANNOTATION_UNSUPPORTED_RHCOS = f"{GROUP}/allow-unsupported-kubevirt-rhcos-variants"
ANNOTATION_KAS_GOGC = f"{GROUP}/kube-apiserver-gogc"
ANNOTATION_KAS_GOMEMLIMIT = f"{GROUP}/kube-apiserver-gomemlimit"
ANNOTATION_KAS_MAX_INFLIGHT = f"{GROUP}/kube-apiserver-max-requests-inflight"
ANNOTATION_KAS_MAX_MUTATING_INFLIGHT = f"{GROUP}/kube-apiserver-max-mutating-requests-inflight"
ANNOTATION_KAS_VERBOSITY = f"{GROUP}/kube-apiserver-verbosity-level"
# Ours, like the API server's.
ANNOTATION_KCM_VERBOSITY = f"{GROUP}/kube-controller-manager-verbosity-level"
ANNOTATION_SCHEDULER_VERBOSITY = f"{GROUP}/kube-scheduler-verbosity-level"
ANNOTATION_KAS_GOAWAY_CHANCE = f"{GROUP}/kube-apiserver-goaway-chance"
# Asked of a HostedCluster: new certificate authorities, a new kubeconfig of the administrator, lives of certificates.
ANNOTATION_ROTATE = f"{GROUP}/rotate-authorities"
ANNOTATION_ROTATION_OVERLAP = f"{GROUP}/rotation-overlap"
ANNOTATION_REVOKE_ADMIN = f"{GROUP}/revoke-admin-kubeconfig"
ANNOTATION_CERTIFICATE_VALIDITY = f"{GROUP}/certificate-validity"
ANNOTATION_AUTHORITY_VALIDITY = f"{GROUP}/authority-validity"
# On the Secret of an authority: what was taken up, and how far it is.
ANNOTATION_ROTATED = f"{GROUP}/rotated-for"
ANNOTATION_REVOKED = f"{GROUP}/revoked-for"
ANNOTATION_ROTATION_STAGE = f"{GROUP}/rotation-stage"
ANNOTATION_ROTATION_SINCE = f"{GROUP}/rotation-since"
ANNOTATION_AUDIT_LOG_VOLUME = f"{GROUP}/audit-log-volume"
ANNOTATION_ETCD_DEFRAG_SCHEDULE = f"{GROUP}/etcd-defrag-schedule"
ANNOTATION_MHC_TIMEOUT = f"{GROUP}/machine-health-check-timeout"
ANNOTATION_MHC_STARTUP_TIMEOUT = f"{GROUP}/machine-health-check-node-startup-timeout"
ANNOTATION_MHC_MAX_UNHEALTHY = f"{GROUP}/machine-health-check-max-unhealthy"
# Ours: how often a sick machine's VM is restarted before it is replaced, and how long its node may take afterwards.
ANNOTATION_REPAIR_RESTARTS = f"{GROUP}/repair-restarts"
ANNOTATION_REPAIR_RESTART_TIMEOUT = f"{GROUP}/repair-restart-timeout"
# What happens to machines whose infra node is drained: `Move` while they run, or `Replace`.
ANNOTATION_EVACUATION = f"{GROUP}/kubevirt-evacuation"
# On a Machine: the restarts that were made for its repair.
ANNOTATION_RESTARTED = f"{GROUP}/restarted-for-repair"
ANNOTATION_KUBEVIRT_TOPOLOGY_SPREAD = f"{GROUP}/nodepool-supports-kubevirt-topology-spread-constraints"
ANNOTATION_TERMINATION_GRACE = f"{GROUP}/kubevirt-termination-grace-period"
# On a NodePool of platform None: names of machines that may join without anybody approving their certificates.
ANNOTATION_EXPECTED_NODES = f"{GROUP}/expected-nodes"
# Ours, on a HostedCluster: annotations, as a JSON object, for the load balancers of Services inside it.
ANNOTATION_LOAD_BALANCERS = f"{GROUP}/load-balancer-annotations"
# Ours, on a HostedCluster: whether it shall sleep, and when it does so by itself.
ANNOTATION_HIBERNATE = f"{GROUP}/hibernate"
ANNOTATION_HIBERNATE_SCHEDULE = f"{GROUP}/hibernate-schedule"
ANNOTATION_WAKE_SCHEDULE = f"{GROUP}/wake-schedule"
ANNOTATION_HIBERNATE_TIME_ZONE = f"{GROUP}/hibernate-time-zone"
# Whether a request to its API wakes it, and, written by the operator, when the last one did.
ANNOTATION_WAKE_ON_REQUEST = f"{GROUP}/wake-on-request"
ANNOTATION_WOKEN = f"{GROUP}/woken-by-request"
ANNOTATION_RESTORED_FROM_BACKUP = f"{GROUP}/restored-from-backup"
# Ours, set by `hcp restore`: etcd waits for a snapshot with this SHA-256 and starts from it.
ANNOTATION_RESTORE_SNAPSHOT = f"{GROUP}/restore-snapshot"
ANNOTATION_CERTIFIED_CATALOG_IMAGE = f"{GROUP}/certified-operators-catalog-image"
ANNOTATION_COMMUNITY_CATALOG_IMAGE = f"{GROUP}/community-operators-catalog-image"
ANNOTATION_REDHAT_CATALOG_IMAGE = f"{GROUP}/redhat-operators-catalog-image"
ANNOTATION_MARKETPLACE_CATALOG_IMAGE = f"{GROUP}/redhat-marketplace-catalog-image"
ANNOTATION_CATALOG_REGISTRY_OVERRIDES = f"{GROUP}/olm-catalogs-is-registry-overrides"
ANNOTATION_IGNITION_TOKEN_EXPIRY = f"{GROUP}/ignition-token-expiration-timestamp"
ANNOTATION_INSTALL_VERSION = f"{GROUP}/install-cli-version"
ANNOTATION_RESOURCE_OVERRIDE_PREFIX = f"resource-request-override.{GROUP}/"
ANNOTATION_IDP_OVERRIDE_PREFIX = f"idpoverrides.{GROUP}/"

# Platforms that this operator knows. None: the machines are the user's own, and nobody here makes or ends one.
PLATFORM_KUBEVIRT = "KubeVirt"
PLATFORM_NONE = "None"
# Which release a node joined with; only on nodes of platform None, where no Machine remembers it.
LABEL_RELEASE_VERSION = f"{GROUP}/release-version"

# On a Node: which labels and taints its pool gave it.
MARK_LABELS_SYNCED = f"{GROUP}/labelsSynced"

# Annotations that are nobody's to set: marks on what node pools make (Secrets, node documents, caches of boot disks).
MARK_BOOT_IMAGE_HASH = f"{GROUP}/kubevirt-boot-image-hash"
MARK_IGNITION_CONFIG = f"{GROUP}/ignition-config"
MARK_IGNITION_REACHED = f"{GROUP}/ignition-reached"
MARK_TOKEN_GENERATED = f"{GROUP}/last-token-generation-time"
MARK_UPGRADE_TYPE = f"{GROUP}/node-pool-upgrade-type"
LABEL_BOOT_IMAGE_ROLE = f"{GROUP}/kubevirt-boot-image-role"
LABEL_DOCUMENT_OF = f"{GROUP}/control-plane-namespace"
LABEL_IGNITION_SERVER = f"{GROUP}/ignition-server"
LABEL_NODEPOOL_SECRET = f"{GROUP}/nodepool-secret"
LABEL_NODEPOOL_UID = f"{GROUP}/nodepool-uid"

# On the Secret with the password of `kubeadmin`: whether the guest has its own, and whether that was deleted there.
MARK_KUBEADMIN = f"{GROUP}/kubeadmin"

# On volumes and snapshots that the storage driver of a hosted cluster made in the infra cluster: what they are, how
# many bytes the guest sees, what they were made from, and the machines that were given them.
LABEL_CSI_ROLE = f"{GROUP}/csi"
MARK_CSI_SIZE = f"{GROUP}/csi-size"
MARK_CSI_SOURCE = f"{GROUP}/csi-source"
MARK_CSI_BACKING = f"{GROUP}/csi-backing"
MARK_OUT_OF_SERVICE = f"{GROUP}/out-of-service"
MARK_CSI_PUBLISHED = f"{GROUP}/csi-published-to"

# On a Machine: the infra node it has to leave, while a new one comes up for it. Its pool is that much larger.
MARK_LEAVES = f"{GROUP}/leaves-infra-node"
# On a VirtualMachine that was put to sleep: the run strategy that it wakes with.
MARK_ASLEEP = f"{GROUP}/asleep"
# On the Route of a hosted API, by the operator: since when the cluster sleeps that a request shall wake. By the router:
# the same date once somebody has asked for it, so that it writes once in a sleep.
MARK_SLEEPS_SINCE = f"{GROUP}/sleeps-since"
MARK_ASKED_FOR = f"{GROUP}/asked-for"

# The accounts of Cluster API's two managers.
CAPI_CORE = "cluster-api"
CAPI_PROVIDER = "capi-provider"
# The ClusterRole of those of them that follow Secrets, and its RoleBinding in each hosted namespace.
SECRET_FOLLOWERS = "hypershift-secret-followers"

# The storage driver beside a control plane: its Deployment, and its account where machines run in the same cluster.
CSI_CONTROLLER = "kubevirt-csi-controller"
CSI_ACCOUNT = "kubevirt-csi"

# The autoscaler of a hosted cluster's node pools: its image in a release, its Deployment, and its account.
AUTOSCALER = "cluster-autoscaler"
# On a MachineDeployment: between which sizes it may move it.
CAPI_SIZE_MIN = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
CAPI_SIZE_MAX = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"

# What needs a right of its own (install/privileges.py), as `hcp install --allow-privileges` names it.
PRIVILEGES = ("pod-security", "priority-classes", "images", "resource-requests", "kept-namespaces", "tolerations")

# Services in a hosted namespace, and the one bootstrap server of a management cluster
API_SERVICE = "kube-apiserver"
# The OAuth server of a hosted cluster, under the names that OpenShift has for it.
OAUTH_SERVER = "oauth-openshift"
OAUTH_ROUTE = "oauth"
OAUTH_CLIENT = "openshift-cli-client"
KONNECTIVITY_SERVICE = "konnectivity-server"
IGNITION_SERVER = "ignition-server"
# Where Routes are reached.
ROUTE_PORT = 443

# Objects with fixed names
SUPPORTED_VERSIONS = "supported-versions"
SUPPORTED_VERSIONS_KEY = "supported-versions"
# Minors the operator knows, newest first.
SUPPORTED_KUBERNETES = ("1.36", "1.35")
SERVER_VERSION_KEY = "server-version"
DEFAULT_RELEASE_KEY = "default-release"
INFRA_CREDENTIALS = "kubevirt-infra-credentials"
# The bootstrap server on node ports, while a hosted cluster asks for it.
IGNITION_NODE_PORT = "ignition-server-node-port"
USER_CA_BUNDLE = "user-ca-bundle"
PULL_SECRET_KEY = ".dockerconfigjson"
SSH_KEY_KEY = "id_rsa.pub"
ETCD_KEY_KEY = "key"
KUBECONFIG_KEY = "kubeconfig"
KUBEADMIN_PASSWORD = "kubeadmin-password"
KUBEADMIN_KEY = "password"
CA_BUNDLE_KEY = "ca-bundle.crt"

PRIORITY_CONTROL_PLANE = "hypershift-control-plane"
PRIORITY_ETCD = "hypershift-etcd"
PRIORITY_API_CRITICAL = "hypershift-api-critical"
PRIORITY_OPERATOR = "hypershift-operator"

MAX_LABEL = 63
MAX_INFRA_ID = 27
_SUFFIX = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_STEERING = (GROUP, "kubevirt.io", "cluster.x-k8s.io", "kubernetes.io", "k8s.io", LABEL_CATALOG)
_LOWER_ALNUM = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_ALNUM = _LOWER_ALNUM | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def control_plane_namespace(namespace: str, name: str) -> str:
    """The namespace that holds the control plane of hosted cluster ``namespace/name``."""
    return f"{namespace}-{name.replace('.', '-')}"


def hosted_role(account: str) -> str:
    """The ClusterRole with what this manager may do in hosted namespaces, where the operator binds it."""
    return f"hypershift-{account}-hosted"


def steers(label: str) -> bool:
    """Whether policies and controllers select pods by such a label, so that nobody but them may set it."""
    domain = label.partition("/")[0]
    return any(domain == owner or domain.endswith(f".{owner}") for owner in _STEERING)


def random_suffix(length: int = _SUFFIX) -> str:
    """Random letters that form no words and are safe in every Kubernetes name."""
    # 27 letters: bytes of 243 and more would favour the first ones, so they are drawn again.
    limit = 256 - 256 % len(_ALPHABET)
    letters = ""
    while len(letters) < length:
        letters += "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in urandom(length * 2) if byte < limit)
    return letters[:length]


def new_infra_id(name: str) -> str:
    """A fresh infrastructure id for a cluster called ``name``: at most 27 characters, recognisable and unique."""
    base = "".join(char if char in _ALNUM or char == "-" else "-" for char in name)
    while "--" in base:
        base = base.replace("--", "-")
    return f"{base[: MAX_INFRA_ID - 1 - _SUFFIX].rstrip('-')}-{random_suffix()}"


def label_problem(value: str) -> str | None:
    """Why ``value`` is not an RFC 1123 label, or None when it is one."""
    if not value:
        return "is empty"
    if len(value) > MAX_LABEL:
        return f"has {len(value)} characters, at most {MAX_LABEL} are allowed"
    if not all(char in _LOWER_ALNUM or char == "-" for char in value) or value[0] == "-" or value[-1] == "-":
        return "is not an RFC1123 label: lower-case letters, digits and '-' only, with a letter or digit at both ends"
    return None


def subdomain_problem(value: str) -> str | None:
    """Why ``value`` is not an RFC 1123 subdomain (dotted labels, 253 characters), or None when it is one."""
    if not value:
        return "is empty"
    if len(value) > 253:
        return f"has {len(value)} characters, at most 253 are allowed"
    for part in value.split("."):
        problem = label_problem(part)
        if problem:
            return f"is not an RFC1123 subdomain: the part {part!r} {problem}"
    return None


def cluster_name_problems(namespace: str, name: str) -> list[str]:
    """Every rule a hosted cluster's name breaks in its namespace; empty when the name is good."""
    problems = []
    if name == DEFAULT_NAMESPACE:
        problems.append(
            f"the name {name!r} is reserved: it would be confused with the namespace that holds hosted clusters"
        )
    if "." in name:
        problems.append(f"the name {name!r} contains a dot, which a control plane namespace cannot carry")
    else:
        problem = label_problem(name)
        if problem:
            problems.append(f"the name {name!r} failed RFC1123 label validation: it {problem}")
    whole = control_plane_namespace(namespace, name)
    if len(whole) > MAX_LABEL:
        problems.append(
            f"the control plane namespace {whole!r} would have {len(whole)} characters, at most {MAX_LABEL} are allowed"
        )
    return problems


def check_cluster_name(namespace: str, name: str) -> None:
    """Refuse a bad hosted cluster name with every rule it breaks."""
    problems = cluster_name_problems(namespace, name)
    if problems:
        raise HcpError(
            f"the cluster name {name!r} in namespace {namespace!r} cannot be used",
            cause="; ".join(problems),
            hint="choose a short name of lower-case letters, digits and '-'",
        )
