"""The screen of `status`. Pure: data in, text out."""

from __future__ import annotations

from typing import Any

from hcp.cli.engine.table import table

Object = dict[str, Any]


def screen(data: Object) -> str:
    lines = [f"hosted cluster {data['namespace']}/{data['name']}: {_state(data)}", ""]
    facts = {
        "platform": data["platform"],
        "version": _version(data),
        "release": data["release"],
        **data["endpoints"],
        "kubeconfig": data["kubeconfig"] and f"Secret {data['namespace']}/{data['kubeconfig']}",
        "infra id": data["infraID"],
        "control plane": _pods(data),
        "machine controllers": _controllers(data),
        "storage": data["storage"],
        "sleep": data["sleep"],
        "paused": data["paused"],
    }
    lines += [f"  {name:<20} {value}" for name, value in facts.items() if value]
    if data["problems"]:
        lines += ["", "Conditions not as they should be", _conditions(data["problems"])]
    broken = [f"{pod['name']}: {pod['phase']} {pod['why']}".rstrip() for pod in data["pods"] if not pod["ready"]]
    lines += _section("Pods not ready", broken)
    lines += _pools(data["nodePools"])
    if data["machines"]:
        header = ["NAME", "POOL", "PHASE", "VM", "NODE", ""]
        rows = [[m["name"], m["pool"], m["phase"], m["vm"], m["node"], m["why"]] for m in data["machines"]]
        lines += ["", "Machines", table(header, rows, "  ")]
    lines += _section("Waiting for", data["waitingFor"])
    return "\n".join(lines)


def _state(data: Object) -> str:
    if data["deleting"]:
        return "being deleted"
    if data["asleep"]:
        return "asleep"
    if data["waitingFor"]:
        return "available, not complete" if data["available"] else "not available yet"
    return "ready"


def _version(data: Object) -> str:
    rollout = data["rollout"]
    if not rollout:
        return data["version"] or "none yet"
    if rollout["state"] == "Completed":
        return str(rollout["version"])
    before = f", before that {data['version']}" if data["version"] else ""
    return f"{rollout['version']} ({rollout['state']}{before})"


def _pods(data: Object) -> str:
    if not data["pods"]:
        return f"no pods seen in namespace {data['controlPlaneNamespace']}"
    ready = sum(pod["ready"] for pod in data["pods"])
    restarts = sum(pod["restarts"] for pod in data["pods"])
    again = f", {restarts} restarts" if restarts else ""
    return f"{ready} of {len(data['pods'])} pods ready in namespace {data['controlPlaneNamespace']}{again}"


def _controllers(data: Object) -> str:
    """They run once for all hosted clusters, not in each one's namespace as users of HyperShift know it."""
    found = data["machineControllers"]
    if not found:
        return ""
    parts = ", ".join(f"{item['name']} {item['ready']}/{item['wanted']}" for item in found)
    return f"{parts} in namespace {found[0]['namespace']}, shared by all hosted clusters"


def _conditions(items: list[Object], pool: bool = False) -> str:
    """The message comes last: it may be long, and the columns before it stay readable."""
    keys = ("pool", "type", "status", "reason", "message") if pool else ("type", "status", "reason", "message")
    header = [{"type": "CONDITION"}.get(key, key.upper()) for key in keys]
    return table(header, [[" ".join(item[key].split()) for key in keys] for item in items], "  ")


def _pools(pools: list[Object]) -> list[str]:
    if not pools:
        return ["", "Node pools", "  none"]
    rows = [[p["name"], f"{p['nodes']} of {p['desired']}", p["version"], _ready(p)] for p in pools]
    lines = ["", "Node pools", table(["NAME", "NODES", "VERSION", "READY"], rows, "  ")]
    problems = [{"pool": pool["name"], **item} for pool in pools for item in pool["problems"]]
    if problems:
        lines += ["", "Conditions of node pools not as they should be", _conditions(problems, pool=True)]
    return lines


def _ready(pool: Object) -> str:
    return "yes" if pool["ready"] else "no"


def _section(title: str, items: list[str]) -> list[str]:
    return ["", title, *(f"  {item}" for item in items)] if items else []
