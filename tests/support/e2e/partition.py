"""No packet between nodes of an embedded cluster; the machine leads all of them, so it can leave them out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from hcp import payload
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import all_nodes


@contextmanager
def partitioned(name: str, one: int, *others: int) -> Iterator[None]:
    """A node on one side and others on the other, by their numbers; nobody else notices anything."""
    tools, spec = payload.find("node-tools"), specs.load(Layout.of(name))
    assert tools is not None
    assert spec is not None
    links = {node.index: node.link for node in all_nodes(spec)}
    table = f"table ip hcp_cut_{spec.addresses.number}"
    pairs = [pair for other in others for pair in ((links[one], links[other]), (links[other], links[one]))]
    drops = "\n".join(f'iifname "{a}" oifname "{b}" drop' for a, b in pairs)
    rules = f"{table} {{ chain f {{ type filter hook forward priority -10; policy accept;\n{drops}\n}} }}"
    nft = str(tools / "bin" / "nft")
    subprocess.run([nft, "-f", "-"], input=rules, text=True, check=True)
    try:
        yield
    finally:
        subprocess.run([nft, "delete", *table.split()], check=True)
