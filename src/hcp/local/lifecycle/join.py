"""Bringing up the nodes after the first; every step looks first and does only what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hcp.kube import Client, load_config
from hcp.kube.errors import AlreadyExists
from hcp.local.addons import waiting
from hcp.local.controlplane import certs
from hcp.local.lifecycle.cleanup import clean_node
from hcp.local.lifecycle.configuring import configure
from hcp.local.lifecycle.settling import settle
from hcp.local.node import launch
from hcp.local.node.processes import processes
from hcp.local.state import parts
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node, joined
from hcp.local.state.parts import Parts
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control
from hcp.local.supervisor.processes import dump
from hcp.payload import Progress

Say = Callable[[str], None]


def join(layout: Layout, spec: Spec, request: UpRequest, say: Say, *, remember: bool = True) -> bool:
    """Starts every joined node that is not well, and waits until all are Ready. Says whether one had to be started.

    A new one is remembered before it is started, so that what was begun can be ended.
    """
    missing = [node for node in joined(spec) if not is_well(node.layout(layout))]
    if not missing:
        return False
    found = parts.gather(spec, Progress(), from_dir=request.from_dir, build=request.build)
    if remember:
        specs.save(layout, spec)
    certs.ensure(layout, spec)
    for node in missing:
        start(layout, node, found, say)
    asyncio.run(_ready(layout, missing, say))
    return True


def is_well(layout: Layout) -> bool:
    """Whether a node's supervisor answers and all it runs is well."""
    facts = control.ask(layout, "facts") if control.running(layout) is not None else None
    return facts is not None and all(item["state"] == "running" for item in facts["processes"])


def start(cluster: Layout, node: Node, found: Parts, say: Say) -> None:
    """One node that does not run, or not well."""
    layout = node.layout(cluster)
    control.stop(layout)
    clean_node(cluster, node)
    layout.make()
    configure(node, layout, found)
    wanted = processes(node, layout, found.binaries(), found.binary_versions())
    specs.write_file(layout.processes, dump(wanted))
    asyncio.run(_register(cluster, node))
    launch.launch(layout, node, cluster.volumes, found.tools())
    settle(layout, node.spec.name, say, lambda _phase: None, node.name)


async def _register(cluster: Layout, node: Node) -> None:
    """The node's pods have the addresses that its links and routes were made for, whoever else joins."""
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {waiting.WORKER_LABEL: ""}},
        "spec": {"podCIDR": node.pods[0], "podCIDRs": node.pods},
    }
    async with Client(load_config(cluster.kubeconfig), user_agent="hcp-local") as client:
        try:
            await client.create(body)
        except AlreadyExists:
            return  # it was here before


async def _ready(cluster: Layout, nodes: list[Node], say: Say) -> None:
    async with Client(load_config(cluster.kubeconfig), user_agent="hcp-local") as client:
        for node in nodes:
            await waiting.node_ready(client, node)
            say(f"  {node.name} is Ready")
