"""Cluster-wide settings of the guest: known fields are checked, all others are kept for the guest to judge."""

from __future__ import annotations

from hcp.api.parts import hostname, local_ref
from hcp.api.schema import MAX_NAME, Schema, anything, array, boolean, immutable, integer, obj, rule, string

CAPABILITIES = ("ImageRegistry", "openshift-samples", "Insights", "baremetal", "Console", "NodeTuning", "Ingress")


def _api_server() -> Schema:
    named = obj(
        {
            "names": array(string(max_len=MAX_NAME), "Host names this certificate answers.", max_items=64),
            "servingCertificate": local_ref("Secret of type kubernetes.io/tls."),
        }
    )
    fields = {
        "servingCerts": obj(
            {"namedCertificates": array(named, "Certificates for further host names.", max_items=32)},
            "Certificates the API server shows.",
            keep_unknown=True,
        ),
        "clientCA": local_ref("ConfigMap with further CAs for client certificates."),
        "additionalCORSAllowedOrigins": array(string(), "Origins that may call the API from a browser."),
        "audit": anything("Which requests are written to the audit log."),
        "encryption": anything("How resources are encrypted at rest."),
        "tlsSecurityProfile": anything("TLS versions and ciphers."),
    }
    return obj(fields, "Settings of the API server.", keep_unknown=True)


def _oauth() -> Schema:
    token = obj(
        {
            "accessTokenInactivityTimeout": string(
                "Tokens unused for longer than this stop working; at least 300s.",
                max_len=64,
                rules=[
                    rule("duration(self).getSeconds() >= 300", "accessTokenInactivityTimeout must be at least 300s")
                ],
            ),
            "accessTokenMaxAgeSeconds": integer("How long a token lives."),
            "accessTokenInactivityTimeoutSeconds": integer("Old spelling of the timeout."),
        },
        "How long tokens live.",
        keep_unknown=True,
    )
    return obj({"tokenConfig": token}, "Settings of the OAuth server.", keep_unknown=True)


def _proxy() -> Schema:
    fields = {
        "httpProxy": string("Proxy for http.", max_len=2048),
        "httpsProxy": string("Proxy for https.", max_len=2048),
        "noProxy": string("Hosts and ranges reached directly.", max_len=65536),
        "readinessEndpoints": array(string(), "Addresses that show whether the proxy works."),
        "trustedCA": local_ref("ConfigMap with CAs of the proxy."),
    }
    return obj(fields, "Proxy of the guest; a change rolls nodes.", keep_unknown=True)


def configuration() -> Schema:
    fields = {
        "apiServer": _api_server(),
        "authentication": anything("How users are authenticated."),
        "featureGate": obj({"featureSet": string("A named set of features.")}, "Features.", keep_unknown=True),
        "image": anything("Where images may come from; a change rolls nodes."),
        "ingress": anything("Default ingress."),
        "network": anything("Settings of the network."),
        "oauth": _oauth(),
        "operatorhub": anything("Catalogs of operators."),
        "scheduler": anything("Settings of the scheduler."),
        "proxy": _proxy(),
    }
    return obj(fields, "Cluster-wide settings of the guest.", keep_unknown=True)


def operator_configuration() -> Schema:
    def stack(doc: str) -> Schema:
        names = ("internalJoinSubnet", "internalTransitSwitchSubnet")
        return obj({name: string("A range in CIDR notation.", max_len=50) for name in names}, doc)

    ovn = obj(
        {
            "ipv4": stack("Ranges OVN-Kubernetes uses for itself, IPv4."),
            "ipv6": stack("Ranges OVN-Kubernetes uses for itself, IPv6."),
            "mtu": integer("MTU of the pod network.", minimum=576, maximum=9216, rules=[immutable("mtu")]),
            "v4InternalSubnet": string("Join subnet, IPv4.", max_len=50),
            "v6InternalSubnet": string("Join subnet, IPv6.", max_len=50),
        },
        "Settings of OVN-Kubernetes.",
    )
    fields = {
        "clusterVersionOperator": anything("Settings of the cluster version operator."),
        "clusterNetworkOperator": obj(
            {
                "disableMultiNetwork": boolean("Leaves Multus out; only with networkType Other."),
                "ovnKubernetesConfig": ovn,
            },
            "Settings of the network operator.",
            keep_unknown=True,
        ),
        "ingressOperator": obj(
            {"endpointPublishingStrategy": anything("How the default ingress is published.")},
            "Settings of the ingress operator.",
            keep_unknown=True,
        ),
    }
    return obj(fields, "Settings of the guest's operators.", keep_unknown=True)


# Belongs to the spec of a HostedCluster: it compares with the network type.
MULTI_NETWORK_RULE = rule(
    "!has(self.operatorConfiguration) || !has(self.operatorConfiguration.clusterNetworkOperator) || "
    "!has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || "
    "!self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork || self.networking.networkType == 'Other'",
    "disableMultiNetwork can only be set to true when networkType is Other",
)


def capabilities() -> Schema:
    def listed(doc: str) -> Schema:
        return array(string(enum=CAPABILITIES), doc, max_items=25, unique=True)

    fields = {"enabled": listed("Parts to have."), "disabled": listed("Parts to leave out.")}
    rules = [
        rule(
            "!has(self.enabled) || !has(self.disabled) || self.enabled.all(one, !(one in self.disabled))",
            "a capability may not be in both enabled and disabled",
        ),
        rule(
            "!has(self.disabled) || !('Ingress' in self.disabled) || 'Console' in self.disabled",
            "Ingress can only be disabled when Console is disabled too",
        ),
        immutable("capabilities"),
    ]
    return obj(fields, "Optional parts of the guest.", default={}, rules=rules)


def autoscaling() -> Schema:
    def seconds(doc: str) -> Schema:
        return integer(doc, minimum=0, maximum=86400)

    scale_down = obj(
        {
            "delayAfterAddSeconds": seconds("Wait after a node was added."),
            "delayAfterDeleteSeconds": seconds("Wait after a node was removed."),
            "delayAfterFailureSeconds": seconds("Wait after a removal failed."),
            "unneededDurationSeconds": seconds("How long a node must be unneeded."),
            "utilizationThresholdPercent": integer("Below this use a node is unneeded.", minimum=0, maximum=100),
        },
        "When nodes are removed.",
    )
    expander = string(enum=("LeastWaste", "Priority", "Random"))
    fields = {
        "scaling": string(
            "Whether nodes are also removed.",
            enum=("ScaleUpOnly", "ScaleUpAndScaleDown"),
            default="ScaleUpAndScaleDown",
        ),
        "scaleDown": scale_down,
        "balancingIgnoredLabels": array(string(max_len=317), "Labels that do not make pools different.", max_items=64),
        "maxNodesTotal": integer("Most nodes in all pools.", minimum=0),
        "maxPodGracePeriod": integer("Seconds a pod gets to end; 600 when unset.", minimum=0),
        "maxNodeProvisionTime": string(
            "How long a new node may take; 15m when unset.", max_len=64, pattern=r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"
        ),
        "maxFreeDifferenceRatioPercent": integer(
            "How different similar pools may be; 10 when unset.", minimum=0, maximum=100
        ),
        "podPriorityThreshold": integer("Pods below this priority never add nodes; -10 when unset."),
        "expanders": array(
            expander, "How a pool is chosen; Priority, LeastWaste when unset.", max_items=3, unique=True
        ),
    }
    rules = [
        rule(
            "!has(self.scaleDown) || self.scaling == 'ScaleUpAndScaleDown'",
            "scaleDown can only be set when scaling is ScaleUpAndScaleDown",
        )
    ]
    return obj(fields, "How the number of nodes follows the load.", rules=rules)


def image_content_sources() -> Schema:
    mirrors = array(string(max_len=255), "Where the same images are found.", max_items=25)
    fields = {"source": string("Repository as images name it.", min_len=1, max_len=255), "mirrors": mirrors}
    entry = obj(fields, required=("source",))
    return array(entry, "Mirrors the nodes use; a change rolls nodes.", max_items=255)


def monitoring() -> Schema:
    forwarding = obj(
        {"mode": string("Whether metrics leave the cluster.", enum=("Forward", "None"))},
        "Sending metrics elsewhere.",
        keep_unknown=True,
    )
    fields = {
        "metricsForwarding": forwarding,
        "metricsSet": string("Which metrics are kept.", enum=("Telemetry", "SRE", "All")),
    }
    return obj(fields, "Metrics of the control plane.", keep_unknown=True)


def dns() -> Schema:
    fields = {
        "baseDomain": string(
            "Domain the guest's names are made under; empty lets the infra cluster's domain be used.",
            max_len=MAX_NAME,
            pattern=r"^$|^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$",
            rules=[rule("oldSelf == '' || self == oldSelf", "baseDomain is immutable once it is not empty")],
        ),
        "baseDomainPrefix": string(
            "What stands before the base domain: the cluster's name when unset, nothing when empty.",
            max_len=MAX_NAME,
            rules=[immutable("baseDomainPrefix")],
        ),
        "publicZoneID": string("Public DNS zone.", max_len=MAX_NAME, rules=[immutable("publicZoneID")]),
        "privateZoneID": string("Private DNS zone.", max_len=MAX_NAME, rules=[immutable("privateZoneID")]),
    }
    rules = [
        rule(
            "!has(oldSelf.baseDomain) || oldSelf.baseDomain == '' || has(self.baseDomain)",
            "baseDomain is immutable once it is not empty",
        )
    ]
    return obj(fields, "Domains of the guest.", rules=rules)


def kube_apiserver_dns_name() -> Schema:
    found = hostname("A further name of the API, which gets a kubeconfig of its own.", min_len=None)
    return {**found, "pattern": rf"^$|{found['pattern']}"}
