"""Settings of the guest's own operators."""

from __future__ import annotations

from hcp.api.schema import Rule, Schema, anything, boolean, immutable, integer, kept, obj, rule, string

_PUBLISHING = ("LoadBalancerService", "HostNetwork", "Private", "NodePortService")


def operator_configuration() -> Schema:
    network = obj(
        {
            "disableMultiNetwork": boolean(
                "Leaves Multus out; only with networkType Other.",
                default=False,
                rules=[immutable("disableMultiNetwork")],
            ),
            "ovnKubernetesConfig": _ovn(),
        },
        "Settings of the network operator.",
        rules=[kept("ovnKubernetesConfig")],
    )
    strategy = obj(
        {"type": string("How it is published.", enum=_PUBLISHING)},
        "How the default ingress is published.",
        required=("type",),
        keep_unknown=True,
    )
    fields = {
        "clusterVersionOperator": anything("Settings of the cluster version operator."),
        "clusterNetworkOperator": network,
        "ingressOperator": obj({"endpointPublishingStrategy": strategy}, "Settings of the ingress operator."),
    }
    return obj(fields, "Settings of the guest's operators.")


def _ovn() -> Schema:
    fields = {
        "mtu": integer("MTU of the pod network.", minimum=576, maximum=9216, rules=[immutable("mtu")]),
        "v4InternalSubnet": _v4("Join subnet, IPv4. Old spelling.", immutable("v4InternalSubnet")),
        "v6InternalSubnet": _v6("Join subnet, IPv6. Old spelling.", immutable("v6InternalSubnet")),
        "ipv4": _stack("Ranges OVN-Kubernetes uses for itself, IPv4.", _v4("A range.")),
        "ipv6": _stack("Ranges OVN-Kubernetes uses for itself, IPv6.", _v6("A range.", immutable("the range"))),
    }
    rules = [kept(name) for name in ("mtu", "ipv6", "v4InternalSubnet", "v6InternalSubnet")]
    rules += [_different(family) for family in ("ipv4", "ipv6")]
    rules += [_kept_inside("ipv6", name) for name in ("internalJoinSubnet", "internalTransitSwitchSubnet")]
    return {**obj(fields, "Settings of OVN-Kubernetes.", rules=rules), "minProperties": 1}


def _stack(doc: str, subnet: Schema) -> Schema:
    fields = dict.fromkeys(("internalJoinSubnet", "internalTransitSwitchSubnet"), subnet)
    return {**obj(fields, doc), "minProperties": 1}


def _v4(doc: str, *more: Rule) -> Schema:
    rules = [
        rule("isCIDR(self) && cidr(self).ip().family() == 4", "must be an IPv4 range such as 100.64.0.0/16"),
        rule("isCIDR(self) && cidr(self).prefixLength() <= 30", "the prefix may be /30 at most"),
        rule("!self.startsWith('0.')", "the first number may not be 0"),
    ]
    return string(doc, min_len=9, max_len=18, rules=[*rules, *more])


def _v6(doc: str, *more: Rule) -> Schema:
    rules = [
        rule("isCIDR(self) && cidr(self).ip().family() == 6", "must be an IPv6 range such as fd98::/64"),
        rule("isCIDR(self) && cidr(self).prefixLength() <= 125", "the prefix may be /125 at most"),
    ]
    return string(doc, min_len=3, max_len=48, rules=[*rules, *more])


def _different(family: str) -> Rule:
    join, transit = f"self.{family}.internalJoinSubnet", f"self.{family}.internalTransitSwitchSubnet"
    return rule(
        f"!has(self.{family}) || !has({join}) || !has({transit}) || {join} != {transit}",
        f"{family}: internalJoinSubnet and internalTransitSwitchSubnet must differ",
    )


def _kept_inside(family: str, name: str) -> Rule:
    return rule(
        f"!has(oldSelf.{family}) || !has(oldSelf.{family}.{name}) || (has(self.{family}) && has(self.{family}.{name}))",
        f"{family}.{name} is immutable and cannot be removed once set",
    )


# Rules that compare with the network type, so they belong to the spec of a HostedCluster.
_NETWORK = "self.operatorConfiguration.clusterNetworkOperator"
_NO_NETWORK = f"!has(self.operatorConfiguration) || !has({_NETWORK})"
NETWORK_RULES = [
    rule(
        f"{_NO_NETWORK} || !has({_NETWORK}.disableMultiNetwork) || !{_NETWORK}.disableMultiNetwork || "
        "self.networking.networkType == 'Other'",
        "disableMultiNetwork can only be set to true when networkType is Other",
    ),
    rule(
        f"{_NO_NETWORK} || !has({_NETWORK}.ovnKubernetesConfig) || self.networking.networkType == 'OVNKubernetes'",
        "ovnKubernetesConfig can only be set when networkType is OVNKubernetes",
    ),
]
