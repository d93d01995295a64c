"""Packet rules of an embedded cluster: in the node's own network namespace, and on the machine for its link.

Pods share no wire: each has a link of its own to the node (CNI plugin ptp), so an ARP answer or an IPv6 link-local
packet of a pod reaches the node and nobody else. What is left to check here is the address a packet comes from, and
what of the node and of the machine a pod may speak to. NetworkPolicies stay what they are: kube-router enforces them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hcp.local.network.addresses import ALL_NODES, API_PORT, REGISTRY_PORT, Addresses

NODE_TABLE = "hcp_node"


def node_rules(plan: Addresses) -> str:
    """For the node's namespace: only own source addresses, nothing but the registry on its address, one masquerade.

    Other clusters of this machine, and with them the virtual machines of their tenants, call its API, pull images and
    use what Services publish, which is translated before. The kubelet and whatever else listens on the node is not
    for them.
    """
    return f"""\
table inet {NODE_TABLE}
delete table inet {NODE_TABLE}
table inet {NODE_TABLE} {{
  chain sources {{
    type filter hook prerouting priority raw; policy accept;
    # A pod sends from the address that leads back to its link, or not at all.
    iifname != {{ "lo", "eth0" }} fib saddr . iif oif missing drop
    iifname != {{ "lo", "eth0" }} meta nfproto ipv6 drop
  }}
  chain services {{
    type filter hook input priority filter; policy accept;
    iifname "lo" accept
    ip daddr {plan.registry} tcp dport {REGISTRY_PORT} accept
    # Addresses of Services are translated before; what still has one belongs to no Service, and without this rule
    # every process that listens on all addresses would answer there.
    ip daddr {{ {plan.registry}, {plan.load_balancers} }} meta l4proto tcp reject with tcp reset
    ip daddr {{ {plan.registry}, {plan.load_balancers} }} reject
    iifname "eth0" ip saddr != {{ {plan.link_range}, {plan.pods} }} jump strangers
  }}
  chain lost {{
    type filter hook forward priority filter; policy accept;
    # The same for addresses that are announced: here they would go back to where they came from.
    oifname "eth0" ip daddr {plan.announced} meta l4proto tcp reject with tcp reset
    oifname "eth0" ip daddr {plan.announced} reject
  }}
  chain strangers {{
    ct state established,related accept
    ct status dnat accept
    ip protocol icmp accept
    tcp dport {API_PORT} accept
    meta l4proto tcp reject with tcp reset
    reject
  }}
  chain outwards {{
    type nat hook postrouting priority srcnat; policy accept;
    # Between nodes pods keep their addresses, as NetworkPolicies need it.
    ip saddr {plan.pods} ip daddr != {plan.pods} oifname "eth0" masquerade
  }}
}}
"""


def machine_rules(table: str, plan: Addresses, resolvers: Sequence[str]) -> str:
    """For the machine: nodes reach the world under its address, and of the machine itself only its resolvers.

    Between clusters addresses stay as they are. Answers to what the machine asked come back, of course.
    """
    asked = (
        f"    ip daddr {{ {', '.join(resolvers)} }} meta l4proto {{ tcp, udp }} th dport 53 accept\n"
        if resolvers
        else ""
    )
    return f"""\
table ip {table}
delete table ip {table}
table ip {table} {{
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {plan.link_range} ip daddr != {ALL_NODES} masquerade
  }}
  chain lost {{
    type filter hook forward priority filter; policy accept;
    # A pod whose node is gone is nowhere: without this rule the default route would lead what is sent to it outside.
    ip daddr {plan.pods} oifname != "{plan.link}" oifname != "{plan.link}n*" drop
  }}
  chain own {{
    type filter hook input priority filter; policy accept;
    iifname != "{plan.link}" iifname != "{plan.link}n*" accept
    ct state established,related accept
    ip protocol icmp accept
{asked}    meta l4proto tcp reject with tcp reset
    reject
  }}
}}
"""
