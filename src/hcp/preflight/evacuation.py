"""Machines that have to leave an infra node, and those that could not move while they run. By what pools say."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions as c
from hcp.kube import Client
from hcp.kube.errors import NotFound
from hcp.kube.resources import NODEPOOLS
from hcp.preflight.result import Finding, ok, warn
from hcp.runtime.conditions import condition_of, is_false

CHECK = "Leaving infra nodes"
# These go on by themselves.
_UNDER_WAY = (c.MIGRATING, c.REPLACING)
_LINES = 10


async def check(client: Client) -> Finding:
    try:
        return finding(await client.list(NODEPOOLS))
    except NotFound:
        return finding([])


def finding(pools: list[dict[str, Any]]) -> Finding:
    leaving = [(_name(pool), found) for pool in pools if (found := condition_of(pool, c.NODES_UNDER_EVACUATION))]
    if leaving:
        lines = [f"{name}: {line}" for name, found in leaving for line in str(found.get("message")).splitlines()]
        more = f"; and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
        told = "; ".join(lines[:_LINES]) + more
        if all(part in _UNDER_WAY for _, found in leaving for part in str(found.get("reason")).split("And")):
            return ok(CHECK, told)
        return warn(CHECK, told, "the drain of these infra nodes waits meanwhile; each line says for what")
    fixed = sorted(_name(pool) for pool in pools if _cannot_move(pool))
    if fixed:
        return ok(CHECK, f"no machine has to; some of {', '.join(fixed)} could not move and would be replaced")
    return ok(CHECK, "no machine has to")


def _cannot_move(pool: dict[str, Any]) -> bool:
    return is_false((pool.get("status") or {}).get("conditions"), c.KUBEVIRT_LIVE_MIGRATABLE)


def _name(pool: dict[str, Any]) -> str:
    return f"{pool['metadata']['namespace']}/{pool['metadata']['name']}"
