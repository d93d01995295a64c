"""What one hosted control plane costs to make: processor time by process, and every write by who made it.

    sudo .venv/bin/python bench/costs.py --name CLUSTER --up   # an embedded cluster whose audit log holds all writes
    sudo .venv/bin/python bench/costs.py --name CLUSTER --release IMAGE [--count 4] [--settle 15] [--list]

Clusters are made one after the other, and all stay until the end. Both figures say little less on a busy machine than
on a quiet one, which seconds do not: processor time is what ten at once are bound by, and writes are counted. What
everybody uses while nothing is asked for is measured before the first one and taken off.

Processor time is that of the embedded cluster's own processes (with what they started and waited for: shims, runc) and
of all pods. Writes are those of everybody, leases and reviews left out, events apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.control_plane import NAMESPACE, Fleet, say
from bench.fleet import grown

from hcp.kube import Client, load_config
from hcp.kube import resources as k
from hcp.local.controlplane import encryption
from hcp.local.lifecycle.up import up
from hcp.local.state.layout import Layout
from hcp.local.state.request import UpRequest

_TICK = os.sysconf("SC_CLK_TCK")
_UNCOUNTED = ("leases", "subjectaccessreviews", "tokenreviews", "selfsubjectreviews")
_READ = ["get", "list", "watch"]


def audit_everything() -> dict[str, Any]:
    """Who wrote what, never contents."""
    leases = [{"group": "coordination.k8s.io", "resources": ["leases"]}]
    rules = [{"level": "None", "verbs": _READ}, {"level": "None", "resources": leases}, {"level": "Metadata"}]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}


def bring_up(name: str) -> None:
    encryption.audit_policy = audit_everything
    up(UpRequest(name, "cluster", releases=("1.36",)), lambda text: print(text, file=sys.stderr))


def _node_processes(name: str) -> Iterator[tuple[str, Path]]:
    """Program and folder in /proc of what shares the mounts of the embedded cluster's supervisor, pods left out."""
    mark, ours = str(Layout.of(name).root), None
    entries = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    for entry in entries:
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if "hcp.local.supervisor" in words and mark in words:
                ours = (entry / "ns/mnt").readlink()
        except OSError:
            continue
    for entry in entries:
        try:
            if ours is not None and (entry / "ns/mnt").readlink() == ours and f"hcp-{name}/" not in _cgroup(entry):
                yield _program((entry / "cmdline").read_bytes().decode(errors="replace").split("\0")), entry
        except OSError:
            continue


def _program(words: list[str]) -> str:
    if "python" in Path(words[0]).name:
        return next((word for word in words if word.startswith("hcp.")), "python")
    return "shims" if "shim" in words[0] else Path(words[0]).name


def _cgroup(entry: Path) -> str:
    return (entry / "cgroup").read_text()


def _ticks(entry: Path, *, children: bool) -> float:
    fields = (entry / "stat").read_text().rpartition(")")[2].split()
    return sum(int(x) for x in fields[11 : 15 if children else 13]) / _TICK


async def processor_time(client: Client, name: str) -> dict[str, float]:
    """Seconds so far, by program; those of hosted pods under the program's name alone, which all of them share."""
    found: dict[str, float] = defaultdict(float)
    for program, entry in _node_processes(name):
        try:
            found[f"node: {program}"] += _ticks(entry, children=True)
        except OSError:
            continue
    where = {pod["metadata"]["uid"]: pod["metadata"]["namespace"] for pod in await client.list(k.PODS)}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            cgroup = _cgroup(entry)
            uid = next((uid for uid in where if f"hcp-{name}/" in cgroup and uid in cgroup), "")
            if not uid:
                continue
            program = _program((entry / "cmdline").read_bytes().decode(errors="replace").split("\0"))
            hosted = where[uid].startswith(f"{NAMESPACE}-")
            found[f"hosted: {program}" if hosted else f"{where[uid]}: {program}"] += _ticks(entry, children=True)
        except OSError:
            continue
    return found


def written(name: str, offset: int) -> tuple[Counter[tuple[str, str, str]], int]:
    """(who, resource, how) of what the audit log holds from `offset` on, and where it ends."""
    found: Counter[tuple[str, str, str]] = Counter()
    with (Layout.of(name).logs / "audit.log").open("rb") as log:
        log.seek(offset)
        for line in log:
            event = json.loads(line)
            what, verb = event.get("objectRef") or {}, str(event["verb"])
            if verb in _READ or what.get("resource") in _UNCOUNTED:
                continue
            who = event["user"]["username"]
            for prefix in ("system:serviceaccount:", "kube-system:", "system:"):
                who = who.removeprefix(prefix)
            kind = "/".join(part for part in (what.get("resource"), what.get("subresource")) if part)
            code = int((event.get("responseStatus") or {}).get("code") or 0)
            how: str = {201: "create", 409: "refused"}.get(code, verb)
            found[who, kind, how] += 1
        return found, log.tell()


async def measure(options: argparse.Namespace) -> None:
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    async with Client(load_config(Layout.of(options.name).kubeconfig)) as client:
        fleet = Fleet(client, options.release)
        await fleet.prepare()
        try:
            await fleet.create(["warm"], options.patience)  # pulls images
            await asyncio.sleep(2 * options.settle)
            idle_from, idle_begun = await processor_time(client, options.name), time.monotonic()
            await asyncio.sleep(2 * options.settle)
            unasked = grown(idle_from, await processor_time(client, options.name))
            idle = {program: used / (time.monotonic() - idle_begun) for program, used in unasked.items()}
            log = Layout.of(options.name).logs / "audit.log"
            offset = log.stat().st_size
            before, begun = await processor_time(client, options.name), time.monotonic()
            took: list[float] = []
            for number in range(options.count):
                took += (await fleet.create([f"cost-{number}"], options.patience)).values()
                await asyncio.sleep(options.settle)
            spent, seconds = grown(before, await processor_time(client, options.name)), time.monotonic() - begun
            made = await fleet.objects("cost-0")
            writes, _ = written(options.name, offset)
        finally:
            await fleet.remove()
    say(f"{options.count} made, one after the other: to Available {statistics.median(took):.1f} s by the median")
    _tell_time(spent, idle, seconds, options.count)
    _tell_writes(writes, made, options)


def _tell_time(spent: dict[str, float], idle: dict[str, float], seconds: float, count: int) -> None:
    each = {program: (used - idle.get(program, 0.0) * seconds) / count for program, used in spent.items()}
    for program, used in sorted(each.items(), key=lambda item: -item[1]):
        if used >= 0.01:
            say(f"  {used:6.2f} s  {program}")
    say(f"  {sum(each.values()):6.2f} s  processor time of one, idle time taken off")


def _tell_writes(writes: Counter[tuple[str, str, str]], made: int, options: argparse.Namespace) -> None:
    count = options.count
    told: Counter[str] = Counter()
    for (who, kind, _), number in writes.items():
        told[who if kind != "events" else f"{who}, events"] += number
    events = sum(number for who, number in told.items() if who.endswith(", events")) / count
    every = sum(told.values()) / count
    for who, number in told.most_common():
        say(f"  {number / count:6.1f}  {who}")
        if options.list and not who.endswith(", events"):
            for (by, kind, how), times in sorted(writes.items(), key=lambda item: -item[1]):
                if by == who and kind != "events":
                    say(f"            {times / count:5.1f}  {kind} {how}")
    ours = sum(n for (who, kind, _), n in writes.items() if who == "hypershift:operator" and kind != "events") / count
    say(f"writes of one: {every - events:.0f} and {events:.0f} events")
    say(f"of the operator: {ours:.0f} for {made} objects = {ours / made:.2f} x (hold 1.5, aim 1.2)")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="the embedded cluster")
    parser.add_argument("--up", action="store_true", help="make it, with an audit log of all writes, and end")
    parser.add_argument("--release", default="")
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--settle", type=float, default=15.0)
    parser.add_argument("--list", action="store_true", help="every kind of write, not only who wrote how often")
    parser.add_argument("--patience", type=float, default=600.0)
    options = parser.parse_args(arguments)
    if options.up:
        bring_up(options.name)
    elif options.release:
        asyncio.run(measure(options))
    else:
        parser.error("--release or --up")


if __name__ == "__main__":
    main(sys.argv[1:])
