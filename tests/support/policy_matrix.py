"""NetworkPolicies, and who may still speak to whom: for tests that send packets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOP, VISITORS = "shop", "visitors"
# Client → its namespace and the number of its node. web runs on node 0, so one of each namespace is beside it.
CLIENTS = {"neighbour": (SHOP, 0), "cousin": (SHOP, 1), "friend": (VISITORS, 0), "stranger": (VISITORS, 1)}
SERVERS = {"web": (SHOP, 0), "store": (SHOP, 1)}
PORTS = (8080, 8081)

Object = dict[str, Any]
# Client → the targets that answer it, as `server:port`.
Matrix = dict[str, set[str]]
ALL = {f"{server}:{port}" for server in SERVERS for port in PORTS}
WEB = {f"web:{port}" for port in PORTS}
OPEN: Matrix = dict.fromkeys(CLIENTS, ALL)


def targets(addresses: Mapping[str, str]) -> dict[str, str]:
    """Name of each target → its address and port."""
    return {f"{server}:{port}": f"{addresses[server]}:{port}" for server in SERVERS for port in PORTS}


def namespaces() -> list[Object]:
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns, "labels": {"team": ns}}}
        for ns in (SHOP, VISITORS)
    ]


def policy(name: str, ns: str, chosen: dict[str, str], **spec: Any) -> Object:
    types = [kind for kind in ("Ingress", "Egress") if kind.lower() in spec]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": ns},
        "spec": {"podSelector": {"matchLabels": chosen}, "policyTypes": types, **spec},
    }


def but(**less: set[str]) -> Matrix:
    """Everything is reached, but not this."""
    return {client: ALL - less.get(client, set()) for client in CLIENTS}


def only(*clients: str, of: set[str] = WEB) -> Matrix:
    """Of these targets nothing is reached by others than these clients."""
    return {client: ALL if client in clients else ALL - of for client in CLIENTS}


def _from(*peers: Object) -> Object:
    return policy("allow", SHOP, {"app": "web"}, ingress=[{"from": list(peers)}])


def _pods(name: str) -> Object:
    return {"matchLabels": {"app": name}}


def cases(addresses: Mapping[str, str]) -> dict[str, tuple[list[Object], Matrix]]:
    """Policies, and what they leave."""
    deny = policy("deny", SHOP, {"app": "web"}, ingress=[])
    visitors = {"namespaceSelector": {"matchLabels": {"team": VISITORS}}}
    to_web = {"to": [{"namespaceSelector": {}, "podSelector": _pods("web")}], "ports": [{"port": 8080}]}
    block = {"ipBlock": {"cidr": "0.0.0.0/0", "except": [f"{addresses['stranger']}/32"]}}
    one = {"ipBlock": {"cidr": f"{addresses['web']}/32"}}
    through = policy("allow", SHOP, {"app": "web"}, ingress=[{"ports": [{"port": 8081, "endPort": 8090}]}])
    return {
        "nobody": ([deny], only()),
        "a pod of the same namespace": ([deny, _from({"podSelector": _pods("cousin")})], only("cousin")),
        "the pod beside it": ([deny, _from({"podSelector": _pods("neighbour")})], only("neighbour")),
        "a namespace": ([deny, _from(visitors)], only("friend", "stranger")),
        "a pod of a namespace": ([deny, _from({**visitors, "podSelector": _pods("friend")})], only("friend")),
        "a range of ports": ([deny, through], only(of={"web:8080"})),
        "addresses": ([deny, _from(block)], only("neighbour", "cousin", "friend")),
        "nothing out of a pod": ([policy("out", VISITORS, {"app": "friend"}, egress=[])], but(friend=ALL)),
        "out to a pod and a port": (
            [policy("out", VISITORS, {"app": "friend"}, egress=[to_web])],
            but(friend=ALL - {"web:8080"}),
        ),
        "out to an address": (
            [policy("out", VISITORS, {"app": "stranger"}, egress=[{"to": [one]}])],
            but(stranger=ALL - WEB),
        ),
        "in and out": (
            [deny, _from(visitors), policy("out", VISITORS, {"app": "friend"}, egress=[to_web])],
            {**only("friend", "stranger"), "friend": {"web:8080"}},
        ),
    }
