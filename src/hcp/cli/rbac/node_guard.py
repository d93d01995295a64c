"""``hcp rbac node-guard``: an AdminNetworkPolicy that keeps virtual machines off nodes, as YAML."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag, UsageError

COMMAND = Command(
    "rbac node-guard",
    "Print an AdminNetworkPolicy that keeps virtual machines off nodes",
    long="For the owner of a cluster whose network enforces AdminNetworkPolicies with nodes as peers, as\n"
    "OVN-Kubernetes does. Virtual machines then reach no kubelet, API server, etcd or ssh of any node.\n"
    "Published services of hosted clusters are not concerned, unless one has a port of these on a node's own address.",
    examples=(
        ("Apply it", "{prog} rbac node-guard | kubectl apply -f -"),
        ("Hosted APIs are on port 6443 of nodes", "{prog} rbac node-guard --except-port 6443"),
    ),
    flags=(Flag("except-port", "stringArray", [], "a port of nodes that machines may reach (repeatable)"),),
    handler="hcp.cli.rbac.node_guard:run",
)


def run(call: Call) -> int | None:
    from hcp.cli.engine.render import documents, write
    from hcp.preflight.node_guard import manifest

    without = set()
    for text in call.items("except-port"):
        if not text.isdecimal() or not 0 < int(text) < 65536:
            raise UsageError(f'invalid argument "{text}" for "--except-port" flag', cause="it is no port")
        without.add(int(text))
    write(documents([manifest(without)]), "", sensitive=False)
    return 0
