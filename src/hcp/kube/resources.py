"""Which URL a kind lives at, for every kind we touch, so the usual call needs no discovery request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind at one version: enough to build its URL and to name it to a person."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """The name RBAC and kubectl use: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, ns: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection, of one object, or of its subresource."""
        parts = [self.root]
        if self.namespaced and ns:
            parts.append(f"namespaces/{ns}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def __str__(self) -> str:
        return self.full_name


KNOWN: dict[tuple[str, str], Resource] = {}


def _r(group: str, version: str, plural: str, kind: str, namespaced: bool = True) -> Resource:
    resource = Resource(group, version, plural, kind, namespaced)
    KNOWN[(resource.api_version, kind)] = resource
    return resource


# core
PODS = _r("", "v1", "pods", "Pod")
SECRETS = _r("", "v1", "secrets", "Secret")
CONFIGMAPS = _r("", "v1", "configmaps", "ConfigMap")
SERVICES = _r("", "v1", "services", "Service")
ENDPOINTS = _r("", "v1", "endpoints", "Endpoints")
NAMESPACES = _r("", "v1", "namespaces", "Namespace", False)
NODES = _r("", "v1", "nodes", "Node", False)
SERVICEACCOUNTS = _r("", "v1", "serviceaccounts", "ServiceAccount")
PVCS = _r("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PVS = _r("", "v1", "persistentvolumes", "PersistentVolume", False)
EVENTS = _r("", "v1", "events", "Event")
RESOURCEQUOTAS = _r("", "v1", "resourcequotas", "ResourceQuota")
LIMITRANGES = _r("", "v1", "limitranges", "LimitRange")
# workloads
DEPLOYMENTS = _r("apps", "v1", "deployments", "Deployment")
STATEFULSETS = _r("apps", "v1", "statefulsets", "StatefulSet")
DAEMONSETS = _r("apps", "v1", "daemonsets", "DaemonSet")
REPLICASETS = _r("apps", "v1", "replicasets", "ReplicaSet")
JOBS = _r("batch", "v1", "jobs", "Job")
CRONJOBS = _r("batch", "v1", "cronjobs", "CronJob")
PDBS = _r("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
PRIORITYCLASSES = _r("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
# network
NETWORKPOLICIES = _r("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
INGRESSES = _r("networking.k8s.io", "v1", "ingresses", "Ingress")
INGRESSCLASSES = _r("networking.k8s.io", "v1", "ingressclasses", "IngressClass", False)
GATEWAYCLASSES = _r("gateway.networking.k8s.io", "v1", "gatewayclasses", "GatewayClass", False)
GATEWAYS = _r("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
HTTPROUTES = _r("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
TLSROUTES = _r("gateway.networking.k8s.io", "v1", "tlsroutes", "TLSRoute")
REFERENCEGRANTS = _r("gateway.networking.k8s.io", "v1beta1", "referencegrants", "ReferenceGrant")
ENDPOINTSLICES = _r("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
SERVICECIDRS = _r("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", False)
NETWORK_ATTACHMENTS = _r("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition")
# rights
ROLES = _r("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDINGS = _r("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTERROLES = _r("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTERROLEBINDINGS = _r("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False)
SELF_ACCESS_REVIEWS = _r("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)
SELF_REVIEWS = _r("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)
TOKEN_REVIEWS = _r("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)
CSRS = _r("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False)
# storage
STORAGECLASSES = _r("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
CSIDRIVERS = _r("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False)
CSINODES = _r("storage.k8s.io", "v1", "csinodes", "CSINode", False)
VOLUMEATTACHMENTS = _r("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False)
VOLUMESNAPSHOTS = _r("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot")
VOLUMESNAPSHOTCLASSES = _r("snapshot.storage.k8s.io", "v1", "volumesnapshotclasses", "VolumeSnapshotClass", False)
VOLUMESNAPSHOTCONTENTS = _r("snapshot.storage.k8s.io", "v1", "volumesnapshotcontents", "VolumeSnapshotContent", False)
# the API itself
LEASES = _r("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS_V1 = _r("events.k8s.io", "v1", "events", "Event")
CLUSTERSERVICEVERSIONS = _r("operators.coreos.com", "v1alpha1", "clusterserviceversions", "ClusterServiceVersion")
CATALOGSOURCES = _r("operators.coreos.com", "v1alpha1", "catalogsources", "CatalogSource")
CRDS = _r("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
APISERVICES = _r("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
VALIDATING_WEBHOOKS = _r(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
)
MUTATING_WEBHOOKS = _r(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
MUTATING_POLICIES = _r(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False
)
MUTATING_POLICY_BINDINGS = _r(
    "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False
)
VALIDATING_POLICIES = _r(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False
)
VALIDATING_POLICY_BINDINGS = _r(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False
)
# hosted clusters
HOSTEDCLUSTERS = _r("hypershift.openshift.io", "v1beta1", "hostedclusters", "HostedCluster")
NODEPOOLS = _r("hypershift.openshift.io", "v1beta1", "nodepools", "NodePool")
HOSTEDCONTROLPLANES = _r("hypershift.openshift.io", "v1beta1", "hostedcontrolplanes", "HostedControlPlane")
CONTROLPLANECOMPONENTS = _r("hypershift.openshift.io", "v1beta1", "controlplanecomponents", "ControlPlaneComponent")
NODEREPAIRS = _r("hypershift.openshift.io", "v1beta1", "noderepairs", "NodeRepair")
NODEREPAIRTEMPLATES = _r("hypershift.openshift.io", "v1beta1", "noderepairtemplates", "NodeRepairTemplate")
# Cluster API
CAPI_CLUSTERS = _r("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
MACHINES = _r("cluster.x-k8s.io", "v1beta1", "machines", "Machine")
MACHINESETS = _r("cluster.x-k8s.io", "v1beta1", "machinesets", "MachineSet")
MACHINEDEPLOYMENTS = _r("cluster.x-k8s.io", "v1beta1", "machinedeployments", "MachineDeployment")
MACHINEHEALTHCHECKS = _r("cluster.x-k8s.io", "v1beta1", "machinehealthchecks", "MachineHealthCheck")
KUBEVIRTCLUSTERS = _r("infrastructure.cluster.x-k8s.io", "v1alpha1", "kubevirtclusters", "KubevirtCluster")
KUBEVIRTMACHINES = _r("infrastructure.cluster.x-k8s.io", "v1alpha1", "kubevirtmachines", "KubevirtMachine")
KUBEVIRTMACHINETEMPLATES = _r(
    "infrastructure.cluster.x-k8s.io", "v1alpha1", "kubevirtmachinetemplates", "KubevirtMachineTemplate"
)
# KubeVirt and CDI
VIRTUALMACHINES = _r("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
VMIS = _r("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
VMI_MIGRATIONS = _r("kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration")
KUBEVIRTS = _r("kubevirt.io", "v1", "kubevirts", "KubeVirt")
DATAVOLUMES = _r("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
DATASOURCES = _r("cdi.kubevirt.io", "v1beta1", "datasources", "DataSource")
STORAGEPROFILES = _r("cdi.kubevirt.io", "v1beta1", "storageprofiles", "StorageProfile", False)
CDIS = _r("cdi.kubevirt.io", "v1beta1", "cdis", "CDI", False)
# OpenShift kinds, where the cluster has them
ROUTES = _r("route.openshift.io", "v1", "routes", "Route")
NETWORK_CONFIGS = _r("config.openshift.io", "v1", "networks", "Network", False)
INGRESS_CONFIGS = _r("config.openshift.io", "v1", "ingresses", "Ingress", False)
IMAGE_CONFIGS = _r("config.openshift.io", "v1", "images", "Image", False)
PROXY_CONFIGS = _r("config.openshift.io", "v1", "proxies", "Proxy", False)
DNS_CONFIGS = _r("config.openshift.io", "v1", "dnses", "DNS", False)
INFRASTRUCTURES = _r("config.openshift.io", "v1", "infrastructures", "Infrastructure", False)
CLUSTERVERSIONS = _r("config.openshift.io", "v1", "clusterversions", "ClusterVersion", False)
CLUSTEROPERATORS = _r("config.openshift.io", "v1", "clusteroperators", "ClusterOperator", False)
OAUTH_CONFIGS = _r("config.openshift.io", "v1", "oauths", "OAuth", False)
APISERVER_CONFIGS = _r("config.openshift.io", "v1", "apiservers", "APIServer", False)
OPERATORHUBS = _r("config.openshift.io", "v1", "operatorhubs", "OperatorHub", False)
IDMS = _r("config.openshift.io", "v1", "imagedigestmirrorsets", "ImageDigestMirrorSet", False)
ITMS = _r("config.openshift.io", "v1", "imagetagmirrorsets", "ImageTagMirrorSet", False)
ICSP = _r("operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies", "ImageContentSourcePolicy", False)
SCCS = _r("security.openshift.io", "v1", "securitycontextconstraints", "SecurityContextConstraints", False)
# monitoring
SERVICEMONITORS = _r("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")
PODMONITORS = _r("monitoring.coreos.com", "v1", "podmonitors", "PodMonitor")
PROMETHEUSRULES = _r("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule")


def resource_for(obj: Mapping[str, Any]) -> Resource:
    """The resource of a manifest by its apiVersion and kind; for kinds not listed here ask the client."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not api_version or not kind:
        raise HcpError("A manifest without apiVersion or kind cannot be sent to an API server.")
    try:
        return KNOWN[(api_version, kind)]
    except KeyError:
        raise HcpError(f"The kind {kind} ({api_version}) is not in the list of known kinds.") from None
