"""`create cluster kubevirt`: its table of flags. The work is in run.py."""

from __future__ import annotations

from hcp.api import defaults
from hcp.cli.create.nodepool.flags import ARCH, AUTO_REPAIR, KUBEVIRT_FLAGS, UPGRADE_TYPE, VM
from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import ACCESS, CONTEXT, KUBECONFIG, VERBOSE

RENDER = "Render and wait"
INPUT = "Identity and files"
NETWORK = "Network"
CONTROL_PLANE = "Control plane"
INFRA = "Infra cluster"
POLICIES = ("HighlyAvailable", "SingleReplica")
CAPABILITIES = (
    *("ImageRegistry", "openshift-samples", "Insights", "baremetal", "Console", "NodeTuning", "Ingress", "Monitoring"),
)

FLAGS = (
    Flag("name", "string", "", "name of the hosted cluster; required", group=INPUT),
    Flag("namespace", "string", "clusters", "namespace of the HostedCluster object", short="n", group=INPUT),
    Flag(
        "pull-secret", "string", "", "registry credentials (docker config JSON); required", metavar="file", group=INPUT
    ),
    Flag("release-image", "string", "", "release to run (default: what the operator names as its own)", group=INPUT),
    Flag("release-stream", "string", "", "take the newest supported release of this OpenShift stream", group=INPUT),
    Flag("base-domain", "string", "", "apps are *.apps.NAME.DOMAIN (default: below the infra cluster's)", group=INPUT),
    Flag("ssh-key", "string", "", "public key that may log in to the nodes", metavar="file", group=INPUT),
    Flag("generate-ssh", "bool", False, "make such a key pair and keep it in a Secret", group=INPUT),
    Flag("additional-trust-bundle", "string", "", "CA certificates to trust", metavar="file", group=INPUT),
    Flag("image-content-sources", "string", "", "YAML list of source and mirrors", metavar="file", group=INPUT),
    Flag("annotations", "stringArray", (), "annotation of the HostedCluster", metavar="key=value", group=INPUT),
    Flag("labels", "stringArray", (), "label of the HostedCluster", metavar="key=value", group=INPUT),
    Flag("infra-id", "string", "", "name prefix of infrastructure (default: generated)", group=INPUT),
    Flag("pausedUntil", "string", "", "do not act before this RFC3339 date, or ever: true", group=INPUT),
    Flag("base-domain-prefix", "string", "", "subdomain", unused="the cluster's name is always used", group=INPUT),
    Flag("infra-json", "string", "", "infra file", unused="there is none", only="hypershift", group=INPUT),
    Flag(
        "control-plane-availability-policy",
        "string",
        "HighlyAvailable",
        "three or one of each control plane part",
        choices=POLICIES,
        hypershift="SingleReplica",
        group=CONTROL_PLANE,
    ),
    Flag(
        "infra-availability-policy",
        "string",
        "",
        "two or one of each infrastructure service in the cluster",
        choices=(*POLICIES, ""),
        group=CONTROL_PLANE,
    ),
    Flag("etcd-storage-class", "string", "", "storage class of etcd (default: the cluster's)", group=CONTROL_PLANE),
    Flag(
        "etcd-storage-size",
        "string",
        "",
        "size of etcd's volume (default 8Gi)",
        metavar="quantity",
        group=CONTROL_PLANE,
    ),
    Flag("node-selector", "stringToString", None, "labels of nodes for control plane pods", group=CONTROL_PLANE),
    Flag("pods-labels", "stringToString", None, "labels put on control plane pods", group=CONTROL_PLANE),
    Flag(
        "toleration",
        "stringArray",
        (),
        "toleration of control plane pods, such as key=cp,operator=exists,effect=noschedule",
        group=CONTROL_PLANE,
    ),
    Flag("fips", "bool", False, "FIPS mode", group=CONTROL_PLANE),
    Flag(
        "feature-set",
        "string",
        "",
        "turn on a set of features",
        choices=("TechPreviewNoUpgrade", "DevPreviewNoUpgrade", ""),
        group=CONTROL_PLANE,
    ),
    Flag(
        "disable-cluster-capabilities",
        "stringSlice",
        (),
        "leave these out; Ingress only together with Console; Monitoring is Prometheus",
        choices=CAPABILITIES,
        group=CONTROL_PLANE,
    ),
    Flag("enable-cluster-capabilities", "stringSlice", (), "add these", choices=CAPABILITIES, group=CONTROL_PLANE),
    Flag(
        "olm-catalog-placement",
        "string",
        "management",
        "where operator catalogs run",
        choices=("management", "guest"),
        ignore_case=True,
        group=CONTROL_PLANE,
    ),
    Flag("olm-disable-default-sources", "bool", False, "no default operator catalogs", group=CONTROL_PLANE),
    Flag("kas-dns-name", "string", "", "one more name of the API server", group=CONTROL_PLANE),
    Flag(
        "control-plane-operator-image", "string", "", "recorded as annotation", only="hypershift", group=CONTROL_PLANE
    ),
    Flag(
        "network-type",
        "string",
        "OVNKubernetes",
        "network of the hosted cluster; OVNKubernetes means the release's own",
        choices=("OVNKubernetes", "Calico", "OpenShiftSDN", "Other"),
        group=NETWORK,
    ),
    Flag("cluster-cidr", "stringArray", (defaults.CLUSTER_CIDR,), "addresses of pods", metavar="cidr", group=NETWORK),
    Flag(
        "service-cidr", "stringArray", (defaults.SERVICE_CIDR,), "addresses of services", metavar="cidr", group=NETWORK
    ),
    Flag("machine-cidr", "stringArray", (), "addresses of nodes", metavar="cidr", group=NETWORK),
    Flag(
        "default-dual",
        "bool",
        False,
        f"IPv4 and IPv6: the usual ranges and {defaults.CLUSTER_CIDR_V6}, {defaults.SERVICE_CIDR_V6}",
        group=NETWORK,
    ),
    Flag(
        "publish",
        "string",
        "load-balancer",
        "how the API server is reached: by an address of its own, or by a Route, so that all clusters share the "
        "router's; the other services are on Routes in any case",
        choices=("load-balancer", "route"),
        group=NETWORK,
    ),
    Flag("external-dns-domain", "string", "", "publish the API server with a Route", group=NETWORK),
    Flag("disable-multi-network", "bool", False, "no Multus; only with --network-type Other", group=NETWORK),
    Flag("ovn-kubernetes-mtu", "int32", 0, "MTU from 576 to 9216; only with OVNKubernetes", group=NETWORK),
    Flag("allocate-node-cidrs", "bool", False, "a pod range per node; only with --network-type Other", group=NETWORK),
    Flag(
        "service-publishing-strategy",
        "string",
        "Ingress",
        "how the control plane is reached",
        choices=("Ingress", "NodePort"),
        only="hypershift",
        group=NETWORK,
    ),
    Flag(
        "api-server-address", "string", "", "address for NodePort (default: a node's)", only="hypershift", group=NETWORK
    ),
    Flag("infra-namespace", "string", "", "namespace of the VMs on another cluster", group=INFRA),
    Flag("infra-kubeconfig-file", "string", "", "kubeconfig of that cluster", metavar="file", group=INFRA),
    Flag(
        "infra-storage-class-mapping",
        "stringArray",
        (),
        "offer a storage class of the infra cluster in the hosted one",
        metavar="INFRA/GUEST[,group=G]",
        group=INFRA,
    ),
    Flag(
        "infra-volumesnapshot-class-mapping",
        "stringArray",
        (),
        "the same for volume snapshot classes",
        metavar="INFRA/GUEST[,group=G]",
        group=INFRA,
    ),
    Flag("node-pool-replicas", "int32", 0, "workers of the first node pool; below 0 makes no pool", group=VM),
    Flag("node-drain-timeout", "duration", 0, "how long a drain may take; 0 is for ever", group=VM),
    Flag("node-volume-detach-timeout", "duration", 0, "how long detaching may take; 0 is for ever", group=VM),
    UPGRADE_TYPE,
    ARCH,
    AUTO_REPAIR,
    *KUBEVIRT_FLAGS,
    Flag("render", "bool", False, "print the objects as YAML instead of applying them; needs no cluster", group=RENDER),
    Flag("render-into", "string", "", "write them to this file instead", metavar="file", group=RENDER),
    Flag("render-sensitive", "bool", False, "include Secrets; a file gets mode 0600", group=RENDER),
    Flag("wait", "bool", False, "wait until the cluster and its nodes are ready", group=RENDER),
    Flag("timeout", "duration", 0, "give up after this long; 0 is never", group=RENDER),
    Flag("version-check", "bool", False, "refuse when client and operator differ", group=ACCESS),
    KUBECONFIG,
    CONTEXT,
    VERBOSE,
)

COMMAND = Command(
    "create cluster kubevirt",
    "Create a hosted cluster with KubeVirt workers",
    long="Makes a HostedCluster, its Secrets and a first NodePool. The operator then starts the control plane in "
    "namespace NAMESPACE-NAME and the workers as KubeVirt VMs. Everything is checked before anything is written; a run "
    "that failed half-way can be repeated as it was typed.",
    examples=(
        (
            "Two workers, wait until they are ready",
            "{prog} create cluster kubevirt --name demo --pull-secret ps.json --node-pool-replicas 2 \\\n"
            "  --memory 6Gi --cores 2 --wait --timeout 20m",
        ),
        (
            "Many clusters behind one address, that of hcp's router",
            "{prog} create cluster kubevirt --name demo --pull-secret ps.json --publish route",
        ),
        (
            "Only print what would be made, Secrets included",
            "{prog} create cluster kubevirt --name demo --pull-secret ps.json --render --render-sensitive",
        ),
        (
            "Workers on another cluster",
            "{prog} create cluster kubevirt --name demo --pull-secret ps.json --node-pool-replicas 2 \\\n"
            "  --infra-namespace demo-vms --infra-kubeconfig-file infra.kubeconfig",
        ),
        (
            "Storage classes of the infra cluster, and a GPU in each worker",
            "{prog} create cluster kubevirt --name demo --pull-secret ps.json --node-pool-replicas 2 \\\n"
            "  --infra-storage-class-mapping=ceph-rbd/gold,group=rbd \\\n"
            "  --infra-volumesnapshot-class-mapping=ceph-snap/gold-snap,group=rbd \\\n"
            '  --host-device-name="nvidia-a100,count:2"',
        ),
    ),
    flags=FLAGS,
    exclusive=(
        ("service-cidr", "default-dual"),
        ("cluster-cidr", "default-dual"),
        ("publish", "external-dns-domain"),
        ("publish", "service-publishing-strategy"),
        ("ssh-key", "generate-ssh"),
    ),
    handler="hcp.cli.create.cluster.run:run",
)
