"""Packet rules of an embedded cluster: in the node's own network namespace, and on the machine for its link.

Pods share no wire: each has a link of its own to the node (CNI plugin ptp), so an ARP answer or an IPv6 link-local
packet of a pod reaches the node and nobody else. What is left to check here is the address a packet comes from, and
what of the node and of the machine a pod may speak to. NetworkPolicies stay what they are: kube-router enforces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hcp.local.network.addresses import ALL_NODES, API_PORT, MAX_NODES, REGISTRY_PORT, Addresses, Stack
from hcp.local.network.addresses6 import ALL as ALL_SIX
from hcp.local.network.addresses6 import Addresses6

NODE_TABLE = "hcp_node"
_NEIGHBOURS = "nd-neighbor-solicit, nd-neighbor-advert"
# Of link-local addresses no NetworkPolicy knows: between a pod and its node they serve to find each other, no more.
_LINK_LOCAL = f"""\
    iifname != {{ "lo", "eth0" }} icmpv6 type {{ {_NEIGHBOURS} }} accept
    iifname != {{ "lo", "eth0" }} ip6 saddr fe80::/10 drop
    iifname != {{ "lo", "eth0" }} ip6 daddr {{ fe80::/10, ff00::/8 }} drop
"""
_NO_SIX = """\
    iifname != { "lo", "eth0" } meta nfproto ipv6 drop
"""


def node_rules(plan: Addresses) -> str:
    """For the node's namespace: only own source addresses, nothing but the registry on its address, one masquerade.

    Other clusters of this machine, and with them the virtual machines of their tenants, call its API, pull images and
    use what Services publish, which is translated before. The kubelet and whatever else listens on the node is not
    for them.
    """
    six = plan.six
    both: list[Stack] = [plan, *([six] if six else [])]
    return f"""\
table inet {NODE_TABLE}
delete table inet {NODE_TABLE}
table inet {NODE_TABLE} {{
  chain sources {{
    type filter hook prerouting priority raw; policy accept;
    # A pod sends from the address that leads back to its link, or not at all.
    iifname != {{ "lo", "eth0" }} fib saddr . iif oif missing drop
{_LINK_LOCAL if six else _NO_SIX}  }}
  chain services {{
    type filter hook input priority filter; policy accept;
    iifname "lo" accept
{_gateways(six) if six else ""}\
{_of_each(both, _registry)}\
    # Addresses of Services are translated before; what still has one belongs to no Service, and without this rule
    # every process that listens on all addresses would answer there.
{_of_each(both, _closed)}{_of_each(both, _strangers)}  }}
  chain lost {{
    type filter hook forward priority filter; policy accept;
    # The same for addresses that are announced: here they would go back to where they came from.
{_of_each(both, _lost)}  }}
  chain strangers {{
    ct state established,related accept
    ct status dnat accept
    ip protocol icmp accept
{_ICMP6 if six else ""}    tcp dport {API_PORT} accept
    meta l4proto tcp reject with tcp reset
    reject
  }}
  chain outwards {{
    type nat hook postrouting priority srcnat; policy accept;
    # Between nodes pods keep their addresses, as NetworkPolicies need it.
{_of_each(both, _outwards)}  }}
}}
"""


def _gateways(six: Addresses6) -> str:
    """The address that pods have as their gateway is the one the node calls them from. They answer it; nothing is to be
    had there for them, since policies leave it out, so that neighbours are found (addons/policy.py).
    """
    found = ", ".join(six.gateway_of(index) for index in range(1, MAX_NODES + 1))
    return f'    iifname != "eth0" ip6 daddr {{ {found} }} meta l4proto != icmpv6 ct state new drop\n'


_ICMP6 = "    meta l4proto icmpv6 accept\n"


def _ip(stack: Stack) -> str:
    return "ip6" if isinstance(stack, Addresses6) else "ip"


def _of_each(stacks: Iterable[Stack], lines: Callable[[Stack, str], Sequence[str]]) -> str:
    return "".join(f"    {line}\n" for stack in stacks for line in lines(stack, _ip(stack)))


def _registry(plan: Stack, ip: str) -> Sequence[str]:
    return [f"{ip} daddr {plan.registry} tcp dport {REGISTRY_PORT} accept"]


def _closed(plan: Stack, ip: str) -> Sequence[str]:
    ours = f"{ip} daddr {{ {plan.registry}, {plan.load_balancers} }}"
    return [f"{ours} meta l4proto tcp reject with tcp reset", f"{ours} reject"]


def _strangers(plan: Stack, ip: str) -> Sequence[str]:
    return [f'iifname "eth0" {ip} saddr != {{ {plan.link_range}, {plan.pods} }} jump strangers']


def _lost(plan: Stack, ip: str) -> Sequence[str]:
    ours = f'oifname "eth0" {ip} daddr {plan.announced}'
    return [f"{ours} meta l4proto tcp reject with tcp reset", f"{ours} reject"]


def _outwards(plan: Stack, ip: str) -> Sequence[str]:
    return [f'{ip} saddr {plan.pods} {ip} daddr != {plan.pods} oifname "eth0" masquerade']


def machine_rules(table: str, plan: Addresses, resolvers: Sequence[str]) -> str:
    """For the machine: nodes reach the world under its address, and of the machine itself only its resolvers.

    Between clusters addresses stay as they are. Answers to what the machine asked come back, of course.
    """
    asked = (
        f"    ip daddr {{ {', '.join(resolvers)} }} meta l4proto {{ tcp, udp }} th dport 53 accept\n"
        if resolvers
        else ""
    )
    six = plan.six
    rules = _machine_table(table, plan, plan.link, ALL_NODES, "    ip protocol icmp accept\n" + asked)
    return rules if six is None else rules + _machine_table(table, six, plan.link, ALL_SIX, _ICMP6)


def _machine_table(table: str, plan: Stack, link: str, ours: str, allowed: str) -> str:
    ip = _ip(plan)
    return f"""\
table {ip} {table}
delete table {ip} {table}
table {ip} {table} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    {ip} saddr {plan.link_range} {ip} daddr != {ours} masquerade
  }}
  chain lost {{
    type filter hook forward priority filter; policy accept;
    # A pod whose node is gone is nowhere: without this rule the default route would lead what is sent to it outside.
    {ip} daddr {plan.pods} oifname != "{link}" oifname != "{link}n*" drop
  }}
  chain own {{
    type filter hook input priority filter; policy accept;
    iifname != "{link}" iifname != "{link}n*" accept
    ct state established,related accept
{allowed}    meta l4proto tcp reject with tcp reset
    reject
  }}
}}
"""
