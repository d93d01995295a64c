"""`hcp local upgrade`: an embedded cluster that runs moves to a newer Kubernetes, part by part.

The API server first, then those that ask it, then node by node what runs there: nobody is ever newer than the API
server. Every part is looked at first and exchanged only where it is another one, so a run that was stopped continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from hcp.errors import HcpError
from hcp.local.lifecycle.plan import need_root
from hcp.local.lifecycle.settling import settle
from hcp.local.lifecycle.up import process_list
from hcp.local.state import nodes, parts
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.locks import exclusive
from hcp.local.state.lookup import existing
from hcp.local.state.nodes import Node
from hcp.local.state.parts import Parts
from hcp.local.state.spec import DEFAULT_KUBERNETES, Spec
from hcp.local.supervisor import control
from hcp.local.supervisor.processes import Process, dump
from hcp.payload import Progress

Say = Callable[[str], None]
# One after the other; those of one line at once.
CONTROL_PLANE = (("etcd",), ("kube-apiserver",), ("kube-controller-manager", "kube-scheduler"))
ON_NODES = ("kubelet", "kube-proxy")
_HIDDEN = (Path("/var"), Path("/run"))


@dataclass(frozen=True)
class Upgraded:
    spec: Spec
    version: str
    # What was exchanged, as a person would name it.
    parts: tuple[str, ...]


def upgrade(name: str, minor: str, say: Say, *, from_dir: Path | None = None, build: bool = False) -> Upgraded:
    """To a minor, or with none said to that of this hcp. On a cluster that has it nothing is done."""
    layout, spec = existing(name)
    if spec.has_node:
        need_root(spec.profile)
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{name}', waiting for it")):
        spec = existing(name)[1]
        wanted = replace(spec, kubernetes=minor or DEFAULT_KUBERNETES)
        if why := problem(spec.kubernetes, wanted.kubernetes, parts.minors()):
            raise HcpError(f"Cluster '{name}' cannot be upgraded to Kubernetes {wanted.kubernetes}", cause=why)
        _all_up(layout, spec)
        found = parts.gather(wanted, Progress(), from_dir=from_dir, build=build)
        _visible(wanted, found)
        # Remembered first: whoever brings a half upgraded cluster back brings back the newer one, never an older.
        specs.save(layout, wanted)
        done = _Run(layout, wanted, found, say).run()
        version = found.versions.get(parts.kubernetes(wanted.kubernetes), "")
        return Upgraded(wanted, version, tuple(done))


def problem(current: str, wanted: str, known: Iterable[str]) -> str:
    """Why a cluster of one minor cannot move to another; empty when it can. Pure."""
    known = list(known)
    if wanted not in known:
        return f"there are: {', '.join(known)}"
    step = int(wanted.partition(".")[2]) - int(current.partition(".")[2])
    if step < 0:
        return f"it is at {current}, and what it has stored may be too new for an older one"
    if step > 1:
        between = f"1.{int(current.partition('.')[2]) + 1}"
        return f"it is at {current}, and API servers go one minor at a time: upgrade to {between} first"
    return ""


def _all_up(layout: Layout, spec: Spec) -> None:
    """A node that is stopped would be left behind, and come back as it was."""
    of = {node.name: node.layout(layout) for node in nodes.all_nodes(spec)} or {spec.name: layout}
    for name, its in of.items():
        facts = control.ask(its, "facts") if control.running(its) is not None else None
        if facts is None or any(item["state"] != "running" for item in facts["processes"]):
            raise HcpError(
                f"{name} is not up, or not all of it is well",
                hint=f"hcp local up --name {spec.name} brings everything up; then run this again.",
            )
        if not facts.get("replaces"):
            raise HcpError(
                f"{name} was started by an older hcp, which cannot exchange a single process",
                hint=f"hcp local down --name {spec.name} (its data stays) and hcp local up --name {spec.name}, "
                "then run this again.",
            )


def _visible(spec: Spec, found: Parts) -> None:
    """A node has a /var and a /run of its own, in which it sees what was there when it was started."""
    path = found.paths.get(parts.kubernetes(spec.kubernetes))
    if spec.has_node and path is not None and any(path.resolve().is_relative_to(over) for over in _HIDDEN):
        raise HcpError(
            f"The nodes do not see {path}",
            cause="they have a /var and a /run of their own",
            hint="Keep the cache elsewhere: set XDG_CACHE_HOME to a folder below /home, /root or /srv.",
        )


class _Run:
    """The exchange, under the cluster's lock."""

    def __init__(self, layout: Layout, spec: Spec, found: Parts, say: Say) -> None:
        self._layout = layout
        self._spec = spec
        self._found = found
        self._say = say

    def run(self) -> list[str]:
        wanted = process_list(self._spec, self._layout, self._found)
        done = []
        for stage in CONTROL_PLANE:
            done += self._exchange(self._layout, wanted, stage)
        for node in nodes.all_nodes(self._spec):
            done += self._node(node, wanted)
        return done

    def _node(self, node: Node, of_first: list[Process]) -> list[str]:
        its = node.layout(self._layout)
        if node.is_first:
            wanted = of_first
        else:
            from hcp.local.node.processes import processes

            wanted = processes(node, its, self._found.binaries(), self._found.binary_versions())
        if not differing(its, wanted, ON_NODES):
            return []
        from hcp.local.lifecycle.configuring import configure

        configure(node, its, self._found)
        if node.is_first:
            specs.write_file(its.run / "tools", "".join(f"{path}\n" for path in self._found.tools()))
        done = self._exchange(its, wanted, ON_NODES, node.name)
        asyncio.run(self._ready(node))
        return done

    def _exchange(self, its: Layout, wanted: list[Process], names: tuple[str, ...], node: str = "") -> list[str]:
        """Parts of one supervisor, until all of them are well."""
        if not (changed := differing(its, wanted, names)):
            return []
        where = f" of {node}" if node else ""
        self._say(f"Exchanging {', '.join(changed)}{where}")
        before = {one.name: one for one in _written(its)}
        after = [one if one.name in names else before.get(one.name, one) for one in wanted if one.name in before]
        control.ask(its, "replace", names=changed, processes=dump(after))
        settle(its, self._spec.name, self._say, lambda _phase: None, node)
        # Written down only now: what lies in the file is what is known to run.
        specs.write_file(its.processes, dump(after))
        return [f"{one}{where}" for one in changed]

    async def _ready(self, node: Node) -> None:
        from hcp.kube import Client, load_config
        from hcp.local.addons import waiting

        async with Client(load_config(self._layout.kubeconfig), user_agent="hcp-local") as client:
            await waiting.node_ready(client, node)
            self._say(f"  {node.name} is Ready")


def differing(its: Layout, wanted: list[Process], names: Iterable[str]) -> list[str]:
    """Of these parts, those that run otherwise than they shall."""
    before = {one.name: one for one in _written(its)}
    return [one.name for one in wanted if one.name in names and one.name in before and before[one.name] != one]


def _written(its: Layout) -> list[Process]:
    from hcp.local.supervisor.processes import read

    return read(its.processes)
