"""`hcp local up`: every step looks first and does only what is missing, so it can be stopped and run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.local.controlplane import certs, encryption
from hcp.local.controlplane.processes import control_plane
from hcp.local.lifecycle.plan import plan
from hcp.local.node import launch, volumes
from hcp.local.state import parts
from hcp.local.state import spec as specs
from hcp.local.state.layout import Layout
from hcp.local.state.locks import exclusive
from hcp.local.state.parts import Parts
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import Spec
from hcp.local.supervisor import control
from hcp.local.supervisor.processes import Process, dump
from hcp.payload import Progress

Say = Callable[[str], None]
_READY_SECONDS = 180.0


@dataclass(frozen=True)
class Outcome:
    spec: Spec
    layout: Layout
    changed: bool
    seconds: dict[str, float]
    """How long each phase took."""


def up(request: UpRequest, say: Say) -> Outcome:
    layout = Layout.of(request.name)
    spec = plan(layout, request.profile)
    if request.extras and not spec.has_node:
        raise HcpError(
            f"--with {', '.join(request.extras)} is for clusters with a node", hint="Use --profile cluster or kubevirt."
        )
    layout.make()
    with exclusive(layout.lock, lambda: say(f"Another command is working on cluster '{request.name}', waiting for it")):
        spec = plan(layout, request.profile).with_extras(request.extras)
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
            from hcp.local.addons import bring_up
            from hcp.local.addons.context import Context

            facts = control.ask(self.layout, "facts") if started else None
            began = facts["began"] if facts else None
            changed = bring_up(Context(self.layout, self.spec, self.request, self.say, self.lap, began)) or changed
        return Outcome(self.spec, self.layout, changed, self.seconds)

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
            launch.launch(self.layout, self.spec, found_parts.tools())
            self.lap("supervisor")
        self._wait()
        return True

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
        certs.ensure(self.layout, self.spec)
        encryption.ensure(self.layout)
        if self.spec.has_node:
            self._configure(found)
        specs.write_file(self.layout.processes, dump(process_list(self.spec, self.layout, found)))
        specs.save(self.layout, self.spec)
        self.lap("certificates and configuration")
        return found

    def _configure(self, found: Parts) -> None:
        from hcp.local.addons.images import references
        from hcp.local.node.processes import may_lower_oom_score, write_configuration

        pause = references({"image-pause": found.paths["image-pause"]})["pause"]
        write_configuration(self.spec, self.layout, found.binaries(), pause, may_lower_oom_score=may_lower_oom_score())
        volumes.prepare(self.layout, found.binaries()["mkfs.btrfs"], self.request.volumes, self.say)
        specs.write_file(self.layout.run / "tools", "".join(f"{path}\n" for path in found.tools()))

    def _wait(self) -> None:
        """Until every process is well; a process that cannot start is named with its last words."""
        end = time.monotonic() + _READY_SECONDS
        version = -1
        well: set[str] = set()
        while True:
            facts = control.ask(self.layout, "watch", timeout=10.0, version=version, seconds=5)
            if facts is None:
                raise self._failure("the supervisor ended")
            version = facts["version"]
            for item in facts["processes"]:
                if item["state"] == "running" and item["name"] not in well:
                    well.add(item["name"])
                    self.say(f"  {item['name']} is up ({item['readyAfter']:.1f} s)")
                    self.lap(item["name"])
            waiting = [item for item in facts["processes"] if item["state"] != "running"]
            if not waiting:
                return
            hopeless = next((item for item in waiting if item["restarts"] >= 4), None)
            if hopeless is not None or time.monotonic() > end:
                raise self._failure(_sentence(hopeless or waiting[0]), (hopeless or waiting[0])["name"])

    def _failure(self, why: str, process: str = "supervisor") -> HcpError:
        log = self.layout.logs / f"{process}.log"
        said = "\n  ".join(telling_lines(log))
        return HcpError(
            f"Cluster '{self.spec.name}' did not come up: {why}",
            cause=f"its last words:\n  {said}" if said else None,
            hint=f"hcp local logs {process} --name {self.spec.name} shows more; running up again continues",
        )


def process_list(spec: Spec, layout: Layout, found: Parts) -> list[Process]:
    """All processes of a profile."""
    binaries, versions = found.binaries(), found.binary_versions()
    processes = control_plane(spec, layout, binaries, versions)
    if spec.has_node:
        from hcp.local.node.processes import node

        processes += node(spec, layout, binaries, versions)
    return processes


def telling_lines(log: Path, count: int = 4) -> list[str]:
    """The last lines of a log, without the supervisor's own remarks."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line[:300] for line in lines if line.strip() and not line.startswith("===")][-count:]


def _sentence(item: dict[str, Any]) -> str:
    return f"{item['name']} is {item['state']}" + (f" ({item['why']})" if item["why"] else "")
