"""`demo`: the guided tour on one machine."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

COMMAND = Command(
    "demo",
    "Show the whole thing on this machine",
    long=(
        "Brings an embedded management cluster up, installs the operator on it and creates a hosted cluster. "
        "Each step is a command you could have typed, and is shown. Stop it at any moment; the next run continues."
    ),
    examples=(("Everything", "sudo {prog} demo"), ("Only a hosted control plane", "sudo {prog} demo --nodes 0")),
    flags=(
        Flag("name", "string", "default", "name of the embedded cluster"),
        Flag("cluster", "string", "demo", "name of the hosted cluster"),
        Flag("nodes", "int32", 2, "virtual machines to add as nodes"),
        *SOURCE_FLAGS,
        Flag("folder", "string", "demo", "folder for the kubeconfigs and logs of the tour", metavar="dir"),
    ),
    handler="hcp.cli.demo:run",
)


def run(call: Call) -> None:
    from pathlib import Path

    from hcp.cli.engine import grammar
    from hcp.cli.engine.terminal import end_like_an_interrupt, note
    from hcp.local.demo.plan import Tour
    from hcp.local.demo.run import run as tour
    from hcp.local.state.layout import Layout
    from hcp.local.state.spec import load

    nodes = call.number("nodes")
    if nodes < 0:
        raise grammar.refuse("nodes", str(nodes), "the number of nodes cannot be negative", "a number from 0")
    end_like_an_interrupt()
    folder = Path(call.text("folder")).resolve()
    name = call.text("name")
    found = load(Layout.of(name))
    exists = found is not None and found.has_node
    asked = Tour(name, call.text("cluster"), nodes, folder, build=build_only(call), exists=exists)
    tour(asked, note)
