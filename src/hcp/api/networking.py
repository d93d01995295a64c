"""How a hosted cluster is connected and how its services are published."""

from __future__ import annotations

from hcp.api import defaults
from hcp.api.parts import HOST_OR_IP_PATTERN, IP_PATTERN, cidr, hostname
from hcp.api.schema import MAX_NAME, Schema, array, immutable, integer, kept, obj, rule, string

SERVICES = ("APIServer", "OAuthServer", "OIDC", "Konnectivity", "Ignition", "OVNSbDb")
PUBLISHING = ("LoadBalancer", "NodePort", "Route", "None", "S3")
NETWORK_TYPES = ("OpenShiftSDN", "Calico", "OVNKubernetes", "Other")


def _no_repeat(one: str, other: str) -> str:
    return f"(!has(self.{one}) || !has(self.{other}) || self.{one}.all(a, self.{other}.all(b, a.cidr != b.cidr)))"


def networking() -> Schema:
    cluster_entry = obj(
        {
            "cidr": cidr("Range the pods take their addresses from."),
            "hostPrefix": integer("Size of the part each node gets.", minimum=0, maximum=128),
        },
        required=("cidr",),
    )
    entry = obj({"cidr": cidr("An address range.")}, required=("cidr",))
    api_server = obj(
        {
            "advertiseAddress": string(
                "Address under which pods of the guest reach the API; "
                f"{defaults.ADVERTISE_V4} or {defaults.ADVERTISE_V6} when unset.",
                min_len=1,
                max_len=45,
                pattern=IP_PATTERN,
                rules=[immutable("advertiseAddress")],
            ),
            "port": integer(
                "Port of that address, and of the API server; 6443 when unset.",
                minimum=1,
                maximum=65535,
                rules=[immutable("port")],
            ),
            "allowedCIDRBlocks": array(
                cidr(), "Ranges that may reach an API published by LoadBalancer.", max_items=500, unique=True
            ),
        },
        "Where the API server is reached inside the guest, and by whom outside.",
    )
    pairs = (("clusterNetwork", "serviceNetwork"), ("clusterNetwork", "machineNetwork"))
    no_repeat = " && ".join(_no_repeat(*pair) for pair in (*pairs, ("serviceNetwork", "machineNetwork")))
    fields = {
        "networkType": string(
            "The guest's pod network; OVNKubernetes means the release's own.",
            enum=NETWORK_TYPES,
            default="OVNKubernetes",
            rules=[immutable("networkType")],
        ),
        "clusterNetwork": array(
            cluster_entry,
            "Ranges of the guest's pods.",
            min_items=1,
            max_items=2,
            default=[{"cidr": defaults.CLUSTER_CIDR}],
            rules=[immutable("clusterNetwork")],
        ),
        "serviceNetwork": array(
            entry,
            "Ranges of the guest's services.",
            min_items=1,
            max_items=2,
            default=[{"cidr": defaults.SERVICE_CIDR}],
            rules=[immutable("serviceNetwork")],
        ),
        "machineNetwork": array(entry, "Ranges the nodes are in.", max_items=20, rules=[immutable("machineNetwork")]),
        "apiServer": api_server,
        "allocateNodeCIDRs": string(
            "Whether the controller manager cuts the pod range into parts for the nodes.",
            enum=("Enabled", "Disabled"),
            rules=[immutable("allocateNodeCIDRs")],
        ),
    }
    rules = [
        rule(no_repeat, "a CIDR may not be repeated across clusterNetwork, serviceNetwork and machineNetwork"),
        rule(
            "!has(self.allocateNodeCIDRs) || self.allocateNodeCIDRs != 'Enabled' || self.networkType == 'Other'",
            "allocateNodeCIDRs can only be Enabled when networkType is Other",
        ),
        kept("machineNetwork"),
    ]
    default = {
        "networkType": "OVNKubernetes",
        "clusterNetwork": [{"cidr": defaults.CLUSTER_CIDR}],
        "serviceNetwork": [{"cidr": defaults.SERVICE_CIDR}],
    }
    return obj(fields, "Address ranges and the kind of network.", default=default, rules=rules)


def services() -> Schema:
    strategy = obj(
        {
            "type": string("How the service is reached.", enum=PUBLISHING),
            "nodePort": obj(
                {
                    "address": string(
                        "Host or address of the nodes.", min_len=1, max_len=MAX_NAME, pattern=HOST_OR_IP_PATTERN
                    ),
                    "port": integer("Port; chosen when unset.", minimum=0, maximum=65535),
                },
                "Details of type NodePort.",
                required=("address",),
            ),
            "loadBalancer": obj(
                {"hostname": hostname("Name under which the load balancer is known.")}, "Details of type LoadBalancer."
            ),
            "route": obj({"hostname": hostname("Host of the Route.")}, "Details of type Route."),
        },
        "How the service is published.",
        required=("type",),
        rules=[
            rule(
                "self.type == 'NodePort' ? has(self.nodePort) : !has(self.nodePort)",
                "nodePort is required when type is NodePort, and forbidden otherwise",
            ),
            rule(
                "self.type == 'LoadBalancer' || !has(self.loadBalancer)",
                "loadBalancer is forbidden unless type is LoadBalancer",
            ),
            rule("self.type == 'Route' || !has(self.route)", "route is forbidden unless type is Route"),
        ],
    )
    fields = {"service": string("Which service.", enum=SERVICES), "servicePublishingStrategy": strategy}
    entry = obj(fields, required=("service", "servicePublishingStrategy"))
    return array(entry, "How each service of the control plane is published.", max_items=6)


# Rules about services that need fields beside them; they belong to the spec of a HostedCluster.
SERVICE_RULES = [
    rule(
        "self.platform.type == 'IBMCloud' ? size(self.services) >= 3 : size(self.services) >= 4",
        "spec.services must hold at least 4 entries (3 on IBMCloud)",
    ),
    rule(
        "self.platform.type == 'IBMCloud' || self.services == oldSelf.services",
        "services is immutable",
    ),
    rule(
        "self.services.all(one, self.services.exists_one(other, other.service == one.service))",
        "each service may be named only once in spec.services",
    ),
    rule(
        "!has(self.configuration) || !has(self.configuration.apiServer) || "
        "!has(self.configuration.apiServer.servingCerts) || "
        "!has(self.configuration.apiServer.servingCerts.namedCertificates) || "
        "self.services.all(s, s.service != 'APIServer' || !has(s.servicePublishingStrategy.loadBalancer) || "
        "!has(s.servicePublishingStrategy.loadBalancer.hostname) || "
        "self.configuration.apiServer.servingCerts.namedCertificates.all(c, !has(c.names) || "
        "!(s.servicePublishingStrategy.loadBalancer.hostname in c.names)))",
        "the APIServer loadBalancer hostname may not be one of the names in servingCerts.namedCertificates",
    ),
]
