"""Flags of `install` and `install render`."""

from __future__ import annotations

from hcp.api.names import PRIVILEGES, SUPPORTED_KUBERNETES
from hcp.cli.engine.command import Flag

_WHAT = "Installation"
_OPERATOR = "Operator"
_OTHER = "Accepted without effect"


def _unused(name: str, kind: str = "bool", default: object = None, why: str = "") -> Flag:
    return Flag(name, kind, default, group=_OTHER, unused=why, hidden=True)


_WEBHOOK = "there are no webhooks: definitions carry the rules, and the operator fills in defaults"
_PLATFORM = "belongs to platforms other than KubeVirt"
_MONITORING = "metrics are offered by the operator itself on port 9000"

FLAGS = (
    Flag("namespace", "string", "hypershift", "namespace of the operator", short="n", group=_WHAT),
    Flag("image", "string", "", "image of the operator, the router and the ignition server (default: the one that is "
         "installed; on embedded clusters the one built here)", group=_WHAT),
    Flag("hypershift-image", "string", "", "the same as --image", group=_WHAT),
    Flag("image-pull-policy", "string", "IfNotPresent", "when images are pulled; Always if unset and the tag moves",
         choices=("Always", "Never", "IfNotPresent"), ignore_case=True, group=_WHAT),
    Flag("pull-secret", "string", "", "file with registry credentials for these images (default: the one given "
         "before)", metavar="file", group=_WHAT),
    Flag("additional-trust-bundle", "string", "", "file with CAs the operator trusts besides the usual ones "
         "(default: those given before)", metavar="file", group=_WHAT),
    Flag("default-release-image", "string", "", "release of clusters that name none", group=_WHAT),
    Flag("supported-versions", "stringSlice", [], "Kubernetes minors that users find releases of (default: those said "
         "before, else all)", choices=SUPPORTED_KUBERNETES, group=_WHAT),
    Flag("internal-registries", "stringSlice", [], "registries (host or host:port) that users may name although they "
         "are inside this cluster; those of mirror sets and of the image configuration may always be", group=_WHAT),
    Flag("insecure-registries", "stringSlice", [], "registries (host or host:port) that are read without TLS",
         group=_WHAT),
    Flag("registry-overrides", "stringSlice", [], "where the images of releases are: source=mirror; whatever they name "
         "is then named there, for control planes, boot disks and nodes", metavar="source=mirror", group=_WHAT),
    Flag("hosted-quota", "stringToString", {}, "what each hosted cluster may have in its namespace: loadbalancers=20, "
         "claims=200, pods=100 unless said otherwise; none takes a limit away", group=_WHAT),
    Flag("router", "bool", False, "install the router for Routes even where Routes exist", group=_WHAT),
    Flag("router-domain", "string", "", "apps domain of the router (default: the cluster's ingress configuration)",
         metavar="domain", group=_WHAT),
    Flag("router-allow-hosts-under-foreign-wildcards", "bool", False, "let a namespace claim a host under a wildcard "
         "which another namespace claimed before", group=_WHAT),
    Flag("enable-admin-rbac-generation", "bool", False, "make the roles hypershift-client and hypershift-readers",
         group=_WHAT),
    Flag("allow-privileges", "stringSlice", [], "privileges of everybody who may write HostedClusters and NodePools; "
         "others need the right to use them (default: those allowed before)", choices=PRIVILEGES, group=_WHAT),
    Flag("without-privilege-policies", "bool", False, "install also before Kubernetes 1.30, where nothing can guard "
         "privileges: whoever may write HostedClusters has all of them", group=_WHAT),
    Flag("limit-crd-install", "stringSlice", [], "platforms whose definitions are wanted; kubevirt always is",
         choices=("aws", "azure", "ibmcloud", "kubevirt", "agent", "openstack", "gcp", "powervs", "none"),
         ignore_case=True, group=_WHAT),
    Flag("development", "bool", False, "no operator pods: run it yourself with hcp operator run", group=_OPERATOR),
    Flag("replicas", "int32", 1, "operator pods; one leads, the others stand by, unless --shards has them share the "
         "work", group=_OPERATOR),
    Flag("shards", "int32", 1, "parts that hosted clusters are dealt out to: with more than one, each operator pod "
         "works on a fair share of them (default: the number said before, else 1)", group=_OPERATOR),
    Flag("additional-operator-env-vars", "stringToString", {}, "environment of the operator", group=_OPERATOR),
    Flag("platform-monitoring", "string", "None", "whether a Prometheus operator reads the metrics",
         choices=("None", "OperatorOnly", "All"), group=_OPERATOR),
    _unused("image-refs", "string", "", "images besides the operator's own are carried in it"),
    _unused("enable-defaulting-webhook", why=_WEBHOOK),
    _unused("enable-validating-webhook", why=_WEBHOOK),
    _unused("enable-conversion-webhook", "bool", True, _WEBHOOK),
    _unused("disable-capi-conversion-webhook", why=_WEBHOOK),
    _unused("disable-capi-migration", why="Cluster API is used at v1beta1 only"),
    _unused("exclude-etcd", why="no etcd operator is installed"),
    _unused("enable-ci-debug-output", why="use hcp operator run -v"),
    _unused("private-platform", "string", "None", _PLATFORM),
    _unused("external-dns-provider", "string", "", "external-dns is not installed by hcp"),
    _unused("external-dns-domain-filter", "string", "", "external-dns is not installed by hcp"),
    _unused("external-dns-credentials", "string", "", "external-dns is not installed by hcp"),
    _unused("external-dns-secret", "string", "", "external-dns is not installed by hcp"),
    _unused("external-dns-txt-owner-id", "string", "", "external-dns is not installed by hcp"),
    _unused("metrics-set", "string", "Telemetry", _MONITORING),
    _unused("enable-uwm-telemetry-remote-write", why=_MONITORING),
    _unused("enable-cvo-management-cluster-metrics-access", why=_MONITORING),
    _unused("rhobs-monitoring", why=_MONITORING),
    _unused("cvo-prometheus-url", "string", "", _MONITORING),
    _unused("slos-alerts", why=_MONITORING),
    _unused("monitoring-dashboards", why=_MONITORING),
    _unused("cert-rotation-scale", "duration", 86400 * 10**9, "certificates are renewed long before they expire"),
    _unused("enable-dedicated-request-serving-isolation", "bool", True, "belongs to managed services"),
    _unused("managed-service", "string", "", "belongs to managed services"),
    _unused("enable-size-tagging", why="belongs to managed services"),
    _unused("enable-etcd-recovery", "bool", True, "members that lost their data are always brought back"),
    _unused("enable-cpo-overrides", why="there is no control plane operator per cluster"),
    _unused("enable-standalone-karpenter-operator", why=_PLATFORM),
    _unused("tech-preview-no-upgrade", why="there is one feature set"),
    _unused("enable-audit-log-persistence", why="audit logs stay in the API server's pod"),
    _unused("scale-from-zero-provider", "string", "", _PLATFORM),
    _unused("scale-from-zero-creds", "string", "", _PLATFORM),
    _unused("hcp-egress-block-cidrs", "stringArray", [], "control plane pods cannot reach the management API"),
    _unused("oidc-storage-provider-s3-bucket-name", "string", "", _PLATFORM),
    _unused("oidc-storage-provider-s3-credentials", "string", "", _PLATFORM),
    _unused("oidc-storage-provider-s3-region", "string", "", _PLATFORM),
    _unused("oidc-storage-provider-s3-secret", "string", "", _PLATFORM),
    _unused("oidc-storage-provider-s3-secret-key", "string", "", _PLATFORM),
    _unused("aws-private-creds", "string", "", _PLATFORM),
    _unused("aws-private-region", "string", "", _PLATFORM),
    _unused("aws-private-secret", "string", "", _PLATFORM),
    _unused("aws-private-secret-key", "string", "", _PLATFORM),
)  # fmt: skip
