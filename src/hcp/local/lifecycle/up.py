"""`hcp local up`: every step looks first and does only what is missing, so it can be stopped and run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hcp.errors import HcpError
from hcp.local.controlplane import certs, encryption
from hcp.local.controlplane.processes import control_plane
from hcp.local.lifecycle.configuring import configure
from hcp.local.lifecycle.join import join
from hcp.local.lifecycle.plan import check_family, plan
from hcp.local.lifecycle.settling import settle
from hcp.local.node import launch, volumes
from hcp.local.node.processes import BALANCER
from hcp.local.state import nodes, parts
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.locks import exclusive
from hcp.local.state.parts import Parts
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import MIRRORS, Spec
from hcp.local.supervisor import control
from hcp.local.supervisor.processes import Process, dump
from hcp.payload import Progress

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    spec: Spec
    layout: Layout
    changed: bool
    seconds: dict[str, float]
    """How long each phase took."""


def up(request: UpRequest, say: Say) -> Outcome:
    layout = Layout.of(request.name)
    spec = plan(layout, request.profile, request.ip_family, request.extras, request.kubernetes)
    if request.extras and not spec.has_node:
        raise HcpError(
            f"--with {', '.join(request.extras)} is for clusters with a node", hint="Use --profile cluster or kubevirt."
        )
    if request.until_node and not spec.has_node:
        raise HcpError("--until node is for clusters with a node", hint="Use --profile cluster or kubevirt.")
    check_family(spec.with_extras(request.extras))
    nodes.with_count(spec, request.nodes)
    layout.make()
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{request.name}', waiting for it")):
        spec = nodes.with_count(
            plan(layout, request.profile, request.ip_family).with_extras(request.extras), request.nodes
        )
        return _Run(request, layout, spec, say).run()


class _Run:
    """One run of `up` under the cluster's lock."""

    def __init__(self, request: UpRequest, layout: Layout, spec: Spec, say: Say) -> None:
        self.request = request
        self.layout = layout
        self.spec = spec
        self.say = say
        self.seconds: dict[str, float] = {}
        self._mark = time.monotonic()

    def run(self) -> Outcome:
        volumes.check(self.layout, self.request.volumes, has_node=self.spec.has_node)
        started = self._processes()
        changed = started
        if self.spec.has_node:
            self._way_out()
            from hcp.local.addons import bring_up

            if self.spec.joined:
                changed = join(self.layout, self.spec, self.request, self.say) or changed
                self.lap("other nodes")
            from hcp.local.addons.context import Context

            facts = control.ask(self.layout, "facts") if started else None
            began = facts["began"] if facts else None
            changed = bring_up(Context(self.layout, self.spec, self.request, self.say, self.lap, began)) or changed
        return Outcome(self.spec, self.layout, changed, self.seconds)

    def _way_out(self) -> None:
        """At every run: Docker, or another firewall, may have come after the cluster."""
        from hcp.local.host import docker, forwarding

        link = self.spec.addresses.link
        try:
            docker.let_through(link)
        except HcpError as error:  # a cluster without a way outside is one too
            self.say(str(error))
        for trouble in forwarding.troubles(link, self.layout.tools()):
            self.say(trouble)

    def lap(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._mark
        self._mark = now

    def _processes(self) -> bool:
        """The supervisor and what it runs. Says whether anything had to be started."""
        found = control.running(self.layout)
        if found is not None:
            facts = control.ask(self.layout, "facts")
            if facts is not None and all(item["state"] == "running" for item in facts["processes"]):
                if self._others(facts):
                    self._change_processes()
                    return True
                specs.save(self.layout, self.spec)
                return False
            if facts is None:
                self.say(f"The supervisor (pid {found.pid}) does not answer, starting it again")
                control.stop(self.layout)
                found = None
        elif control.was_started(self.layout):
            self.say(f"Cluster '{self.spec.name}' was stopped from outside, bringing it back")
        if found is None:
            found_parts = self._prepare()
            first = nodes.first(self.spec) if self.spec.has_node else None
            launch.launch(self.layout, first, self.layout.volumes, found_parts.tools())
            self.lap("supervisor")
        settle(self.layout, self.spec.name, self.say, self.lap)
        return True

    def _others(self, facts: dict[str, Any]) -> bool:
        """Whether what was added to the cluster wants another process, or one process less."""
        running = {item["name"] for item in facts["processes"]}
        return (self.spec.has_mirrors and MIRRORS not in running) or (self.spec.has_metallb and BALANCER in running)

    def _change_processes(self) -> None:
        """For what was added to a cluster that runs; what it has nothing to do with is left alone."""
        found = parts.gather(self.spec, Progress(), from_dir=self.request.from_dir, build=self.request.build)
        self.lap("payload")
        self._write_processes(found)
        facts = control.ask(self.layout, "reload")
        if facts is not None and self._others(facts):
            raise HcpError(
                f"Cluster '{self.spec.name}' was started by an older hcp, which cannot end a single process",
                hint=f"hcp local down --name {self.spec.name} (its data stays), then run this again.",
            )
        settle(self.layout, self.spec.name, self.say, self.lap)

    def _write_processes(self, found: Parts) -> None:
        certs.ensure(self.layout, self.spec)
        specs.write_file(self.layout.processes, dump(process_list(self.spec, self.layout, found)))
        specs.save(self.layout, self.spec)

    def _prepare(self) -> Parts:
        from hcp.local.host.checks import check_disk, check_host, check_ports

        if self.spec.has_node:
            from hcp.local.lifecycle.cleanup import clean_machine

            clean_machine(self.layout, self.spec)  # whatever a killed supervisor left
            check_host(self.layout, self.spec)
        else:
            check_disk(self.layout, self.spec)
            check_ports(self.spec)
        self.lap("checks")
        found = parts.gather(self.spec, Progress(), from_dir=self.request.from_dir, build=self.request.build)
        self.lap("payload")
        encryption.ensure(self.layout)
        if self.spec.has_node:
            self._configure(found)
        self._write_processes(found)
        self.lap("certificates and configuration")
        return found

    def _configure(self, found: Parts) -> None:
        configure(nodes.first(self.spec), self.layout, found)
        volumes.prepare(self.layout, found.binaries()["mkfs.btrfs"], self.request.volumes, self.say)
        specs.write_file(self.layout.run / "tools", "".join(f"{path}\n" for path in found.tools()))


def process_list(spec: Spec, layout: Layout, found: Parts) -> list[Process]:
    """All processes of a profile."""
    binaries, versions = found.binaries(), found.binary_versions()
    processes = control_plane(spec, layout, binaries, versions)
    if spec.has_node:
        from hcp.local.node.processes import processes as of_node

        processes += of_node(nodes.first(spec), layout, binaries, versions)
    return processes
