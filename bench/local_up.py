"""How long `hcp local up` takes, phase by phase, and what it weighs, against a bare etcd + kube-apiserver.

    sudo .venv/bin/python bench/local_up.py [--profile cluster|kubevirt] [--json FILE]

Payloads must be built (by `hcp payload build` or one `hcp local up`): building is not what is measured. The yardstick
is started by hand in the same run, so the figures mean the same on a slow and on a fast machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hcp.local.controlplane import certs
from hcp.local.controlplane import processes as control_plane
from hcp.local.lifecycle.down import down
from hcp.local.lifecycle.up import up
from hcp.local.network.ports import free_ports
from hcp.local.node.launch import last_line
from hcp.local.state import parts
from hcp.local.state.layout import Layout
from hcp.local.state.request import UpRequest
from hcp.local.state.spec import Spec
from hcp.local.status.memory import pss_bytes
from hcp.local.status.status import look
from hcp.local.status.tables import table
from hcp.local.supervisor.probes import check
from hcp.payload import Progress

NAME = "bench"
NODE_READY = "node ready"
VIRTUALIZATION_READY = "KubeVirt and CDI ready"
# Seconds from the start of `up`, on 2 cores with payloads built.
HOLDS = {NODE_READY: 60.0, VIRTUALIZATION_READY: 150.0}


def bare_pair() -> tuple[float, dict[str, int]]:
    """Seconds until a bare etcd + kube-apiserver answers /readyz, and the memory of both."""
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(Path(folder) / "bare")
        layout.make()
        spec = Spec("bare", "api", None, *free_ports(3))  # type: ignore[arg-type]
        certs.ensure(layout, spec)
        found = parts.gather(spec, Progress())
        processes = control_plane.control_plane(spec, layout, found.binaries(), {})
        began = time.monotonic()
        running: list[tuple[str, subprocess.Popen[bytes]]] = []
        try:
            for process in processes:
                with (layout.logs / f"{process.name}.log").open("wb") as log:
                    running.append((process.name, subprocess.Popen(process.argv, stdout=log, stderr=log)))
            probe = processes[-1].probe
            assert probe is not None
            while asyncio.run(check(probe)):
                ended = next((name for name, child in running if child.poll() is not None), None)
                if ended is not None:
                    raise SystemExit(f"{ended} ended: {last_line(layout.logs / f'{ended}.log')}")
                time.sleep(0.05)
            seconds = time.monotonic() - began
            time.sleep(5)
            return seconds, {name: pss_bytes(child.pid) for name, child in running}
        finally:
            for _, child in reversed(running):
                child.kill()  # what it wrote is thrown away; a polite end waits for the other one
                child.wait()


def measure(profile: str) -> dict[str, Any]:
    yardstick, bare_memory = bare_pair()
    outcome = up(UpRequest(NAME, profile, releases=()), lambda text: print(text, file=sys.stderr))
    try:
        time.sleep(5)
        status = look(NAME)
        began = time.monotonic()
        up(UpRequest(NAME, releases=()), lambda text: print(text, file=sys.stderr))
        again = time.monotonic() - began
    finally:
        began = time.monotonic()
        down(NAME, purge=True, say=lambda text: None)
        gone = time.monotonic() - began
    total, at = 0.0, {}
    for phase, seconds in outcome.seconds.items():
        total += seconds
        at[phase] = total
    return {
        "profile": profile,
        "yardstick": yardstick,
        "yardstickMemory": bare_memory,
        "phases": outcome.seconds,
        "at": at,
        "total": total,
        "secondUp": again,
        "down": gone,
        "memory": {line.component: line.memory for line in status.lines if line.memory},
    }


def report(found: dict[str, Any]) -> str:
    unit = found["yardstick"]
    rows = [["bare etcd + kube-apiserver", f"{unit:.1f}", "1.0", "", ""]]
    for phase, seconds in found["phases"].items():
        hold = HOLDS.get(phase)
        held = "" if hold is None else f"{'held' if found['at'][phase] <= hold else 'MISSED'}: <= {hold:.0f} s"
        rows.append([phase, f"{seconds:.1f}", f"{seconds / unit:.1f}", f"{found['at'][phase]:.1f}", held])
    for title, key in (("everything", "total"), ("up again, nothing to do", "secondUp"), ("down --purge", "down")):
        rows.append([title, f"{found[key]:.1f}", f"{found[key] / unit:.1f}", "", ""])
    times = table(["PHASE", "SECONDS", "x BARE PAIR", "SINCE START", "HOLD"], rows)
    bare = sum(found["yardstickMemory"].values())
    sizes = [[name, f"{size / (1 << 20):.0f}"] for name, size in found["memory"].items()]
    whole = sum(found["memory"].values())
    sizes += [["all", f"{whole / (1 << 20):.0f}"], ["bare etcd + kube-apiserver", f"{bare / (1 << 20):.0f}"]]
    return f"{times}\n{table(['COMPONENT', 'MiB'], sizes)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", choices=("cluster", "kubevirt"), default="kubevirt")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    found = measure(arguments.profile)
    print(report(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    missed = [phase for phase, hold in HOLDS.items() if found["at"].get(phase, 0.0) > hold]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
