"""`hcp local node …`: single nodes of a cluster that runs come, go, stop and start."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

from hcp.errors import HcpError
from hcp.kube import Client, load_config
from hcp.kube.errors import NotFound
from hcp.kube.resources import NODES
from hcp.local.lifecycle.cleanup import clean_node
from hcp.local.lifecycle.drain import drain
from hcp.local.lifecycle.join import join
from hcp.local.lifecycle.plan import need_root
from hcp.local.lifecycle.up import up
from hcp.local.state import nodes
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.locks import exclusive
from hcp.local.state.lookup import existing
from hcp.local.state.nodes import Node
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control

Say = Callable[[str], None]


def add(name: str, count: int, say: Say) -> list[Node]:
    """More nodes; gives those that joined."""
    if count < 1:
        raise HcpError(f"{count} nodes cannot be added", exit_code=2)
    with _working(name, say) as (_, spec):
        have = 1 + len(spec.joined)
    outcome = up(UpRequest(name, nodes=have + count), say)
    return [node for node in nodes.joined(outcome.spec) if node.index not in spec.joined]


def start(name: str, named: str, say: Say) -> tuple[Node, bool]:
    """A node that was stopped; says whether it had to be started."""
    with _working(name, say) as (layout, spec):
        node = _joined(spec, named)
        return node, join(layout, replace(spec, joined=[node.index]), UpRequest(name), say, remember=False)


def stop(name: str, named: str, say: Say, *, at_once: bool) -> tuple[Node, bool]:
    """Ends a node as its power button would, or as a pulled plug would. Says whether it ran."""
    with _working(name, say) as (layout, spec):
        node = _joined(spec, named)
        its = node.layout(layout)
        found = control.running(its)
        if found is not None and at_once:
            # Process 1 of its pid namespace: the kernel ends all others with it, without a word.
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
        was_up = control.stop(its)
        clean_node(layout, node)
        return node, was_up or found is not None


def remove(name: str, named: str, say: Say, *, patience: float, force: bool) -> Node:
    """Drains a node, takes it out of the cluster and forgets it. What it held in its own folder goes; volumes stay."""
    with _working(name, say) as (layout, spec):
        node = _joined(spec, named)
        asyncio.run(_leave(layout, node, say, None if force else patience))
        its = node.layout(layout)
        control.stop(its)
        clean_node(layout, node)
        shutil.rmtree(its.root, ignore_errors=True)
        specs.save(layout, nodes.without(spec, node.index))
        return node


async def _leave(layout: Layout, node: Node, say: Say, patience: float | None) -> None:
    async with Client(load_config(layout.kubeconfig), user_agent="hcp-local") as client:
        if patience is not None:
            await drain(client, node.name, patience, say)
        with contextlib.suppress(NotFound):
            await client.delete(NODES, node.name)


def _joined(spec: Spec, named: str) -> Node:
    if named in (spec.node_name, "1"):
        raise HcpError(
            f"{spec.node_name} is the first node: the control plane, the registry and the volumes are on it",
            hint=f"hcp local down --name {spec.name} stops the whole cluster.",
        )
    return nodes.find(spec, named, nodes.joined(spec))


@contextlib.contextmanager
def _working(name: str, say: Say) -> Iterator[tuple[Layout, Spec]]:
    """The cluster, held, when it is up and can have nodes."""
    layout, spec = existing(name)
    if not spec.has_node:
        raise HcpError(f"Cluster '{name}' has profile {spec.profile}, which has no nodes")
    need_root(spec.profile)
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{name}', waiting for it")):
        if control.running(layout) is None:
            raise HcpError(
                f"Cluster '{name}' is not up", hint=f"hcp local up --name {name} starts it with all its nodes."
            )
        yield layout, existing(name)[1]
