"""The nodes of an embedded cluster: the first has the control plane and the registry beside it, others joined it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hcp.errors import HcpError
from hcp.local.network.addresses import MAX_NODES, Addresses, Stack
from hcp.local.state.layout import Layout
from hcp.local.state.spec import Spec


@dataclass(frozen=True)
class Node:
    """One node: its name, its addresses, its folder."""

    spec: Spec
    index: int = 1

    @property
    def is_first(self) -> bool:
        return self.index == 1

    @property
    def name(self) -> str:
        return self.spec.node_name if self.is_first else f"{self.spec.node_name}-{self.index}"

    @property
    def plan(self) -> Addresses:
        return self.spec.addresses

    @property
    def address(self) -> str:
        """The one it is known by; `addresses` has those of both families."""
        return self.plan.primary.node_of(self.index)

    @property
    def addresses(self) -> list[str]:
        return [stack.node_of(self.index) for stack in self.plan.stacks]

    @property
    def pods(self) -> list[str]:
        """Ranges of its pods, one of each family that Kubernetes uses."""
        return [stack.pods_of(self.index) for stack in self.plan.stacks]

    @property
    def links(self) -> list[Stack]:
        """The addresses of its link to the machine, which has IPv4 always."""
        six = self.plan.six
        return [self.plan] if six is None else [self.plan, six]

    @property
    def link(self) -> str:
        return self.plan.link_of(self.index)

    def layout(self, cluster: Layout) -> Layout:
        """A joined node sees its own folder only, and so no key of the cluster."""
        return cluster if self.is_first else cluster.joined(self.index)


def first(spec: Spec) -> Node:
    return Node(spec)


def joined(spec: Spec) -> list[Node]:
    return [Node(spec, index) for index in spec.joined]


def all_nodes(spec: Spec) -> list[Node]:
    return [first(spec), *joined(spec)] if spec.has_node else []


def with_count(spec: Spec, count: int | None) -> Spec:
    """The cluster with this many nodes: more join, none leaves by this."""
    if count is None:
        return spec
    have = 1 + len(spec.joined)
    if not spec.has_node:
        raise HcpError("--nodes is for clusters with a node", hint="Use --profile cluster or kubevirt.", exit_code=2)
    if not 1 <= count <= MAX_NODES:
        raise HcpError(f"An embedded cluster has 1 to {MAX_NODES} nodes, not {count}", exit_code=2)
    if count < have:
        raise HcpError(
            f"Cluster '{spec.name}' has {have} nodes, and --nodes takes none away",
            hint=f"hcp local node remove NODE --name {spec.name} drains one and takes it away.",
        )
    return with_more(spec, count - have)


def with_more(spec: Spec, more: int) -> Spec:
    free = [index for index in range(2, MAX_NODES + 1) if index not in spec.joined]
    if more > len(free):
        raise HcpError(f"Cluster '{spec.name}' has {MAX_NODES} nodes, which is all there can be")
    return replace(spec, joined=sorted([*spec.joined, *free[:more]]))


def without(spec: Spec, index: int) -> Spec:
    return replace(spec, joined=[other for other in spec.joined if other != index])


def find(spec: Spec, named: str, among: Iterable[Node] | None = None) -> Node:
    """The node somebody means, by its name or its number."""
    known = list(all_nodes(spec) if among is None else among)
    for node in known:
        if named in (node.name, str(node.index)):
            return node
    raise HcpError(
        f"Cluster '{spec.name}' has no such node: {named}",
        hint=f"There are: {', '.join(node.name for node in known) or 'none that joined'}.",
        exit_code=4,
    )
