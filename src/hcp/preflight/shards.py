"""Which operator process works on which part of the hosted clusters, where they share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube.errors import Forbidden
from hcp.kube.resources import LEASES
from hcp.preflight.result import Finding, ok, unknown, warn
from hcp.runtime.shards import holder_of, lease_name

CHECK = "Shards of the operator"
# Holders renew every few seconds; clocks of machines differ.
STALE = dt.timedelta(minutes=2)


def count_of(deployment: Mapping[str, Any]) -> int:
    """The number that the operator's Deployment gives its pods."""
    containers = at(dict(deployment), "spec.template.spec.containers") or [{}]
    said = [arg.partition("=")[2] for arg in containers[0].get("args") or () if arg.startswith("--shards=")]
    return int(said[0]) if said and said[0].isdigit() else 1


async def check(client: Client, deployment: Mapping[str, Any]) -> Finding | None:
    """None where nothing is shared."""
    count = count_of(deployment)
    if count == 1:
        return None
    try:
        leases = await client.list(LEASES, names.OPERATOR_NAMESPACE)
    except Forbidden as error:
        return unknown(CHECK, f"not allowed to look at Leases in {names.OPERATOR_NAMESPACE}", error.hint or "")
    return judge(count, leases, dt.datetime.now(dt.UTC))


def judge(count: int, leases: Iterable[Mapping[str, Any]], now: dt.datetime) -> Finding:
    known = {lease["metadata"]["name"]: lease for lease in leases}
    holders = {number: _holder(known.get(lease_name(number)), now) for number in range(count)}
    left = [str(number) for number, who in holders.items() if not who]
    if left:
        many = "shards" if len(left) > 1 else "shard"
        return warn(
            CHECK,
            f"nobody works on {many} {', '.join(left)} of {count}: their hosted clusters run, but nothing is changed",
            f"kubectl -n {names.OPERATOR_NAMESPACE} logs -l app=operator says why; a process that has ended is "
            "replaced within half a minute",
        )
    each = ", ".join(f"{number} {who}" for number, who in holders.items())
    return ok(CHECK, f"{count}, by {len(set(holders.values()))} processes: {each}")


def _holder(lease: Mapping[str, Any] | None, now: dt.datetime) -> str:
    """Who renewed it not long ago."""
    renewed = at(dict(lease or {}), "spec.renewTime")
    if lease is None or not renewed or now - dt.datetime.fromisoformat(str(renewed)) > STALE:
        return ""
    return holder_of(dict(lease))
