"""Starting the supervisor in namespaces of its own, joined to the machine by one veth link."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.host import machine, programs
from hcp.local.host.checks import kvm
from hcp.local.host.resolvers import machine_nameservers
from hcp.local.network.firewall import node_rules
from hcp.local.node import cgroups, launch
from hcp.local.node.files import node_etc
from hcp.local.node.routes import inside
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import Node
from hcp.local.state.spec import write_file


def start_in_namespaces(layout: Layout, node: Node, pool: Path, tools: list[Path]) -> int:
    """Gives the pid of the supervisor as the machine sees it.

    `layout` is the node's; `pool` is the file with the cluster's volumes; `tools` are folders with the node's binaries.
    """
    cgroups.remove(node.name)
    cgroups.make(node.name)
    for name, text in node_etc(node, machine_nameservers()).items():
        write_file(layout.etc / "node" / name, text, mode=0o644)
    write_file(layout.run / "inside.json", json.dumps(_facts(layout, node, pool, tools)))
    tell_read, tell_write = os.pipe()
    wait_read, wait_write = os.pipe()
    with (layout.logs / "supervisor.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hcp.local.node.namespace_init", str(layout.root), str(tell_write), str(wait_read)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(tell_write, wait_read),
        )
    os.close(tell_write)
    os.close(wait_read)
    with os.fdopen(tell_read) as tell:
        answer = tell.readline().strip()
    process.wait()
    if not answer:
        os.close(wait_write)
        raise HcpError(
            "Namespaces for the cluster could not be made", cause=launch.last_line(layout.logs / "supervisor.log")
        )
    pid = int(answer)
    try:
        machine.connect(node, pid, tools)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    os.write(wait_write, b"1")
    os.close(wait_write)
    return pid


def _facts(layout: Layout, node: Node, pool: Path, tools: list[Path]) -> dict[str, object]:
    """What the process inside has to know. Plain data, because it starts from nothing."""
    from hcp.payload.store import cache_root

    folders = [str(tool / "bin") for tool in tools]
    source = Path(__file__).resolve().parents[3]
    return {
        "hostname": node.name,
        "network": inside(node),
        "six": node.plan.six is not None,
        "pool": str(pool),
        "rules": node_rules(node.plan),
        "kvm": kvm()[0],
        "ip": programs.ip(),
        "keep": [str(cache_root()), str(source), *(str(tool) for tool in tools)],
        "argv": launch.supervisor_argv(layout),
        "env": {
            "PATH": ":".join([*folders, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]),
            "PYTHONUNBUFFERED": "1",
            "HOME": "/root",
        },
    }
