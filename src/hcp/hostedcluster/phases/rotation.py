"""Moving certificate authorities on at the end of a pass, when everybody has got what came before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hcp.api import conditions as c
from hcp.controlplane import rotation, validity
from hcp.controlplane.params import Params
from hcp.controlplane.rotation import Authority, Request
from hcp.errors import HcpError
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import SECRETS
from hcp.runtime.workloads import rolled_out

_DOING = {
    rotation.DISTRIBUTING: "both the old and the new authority are being made known",
    rotation.REISSUING: "certificates of the new authority are in use, the old one is still trusted",
    rotation.FINISHING: "the old authority is being taken out of every bundle",
    rotation.REVOKING: "the administrator's kubeconfig is being replaced",
}


def problems(annotations: Mapping[str, str]) -> list[str]:
    """What the annotations ask that cannot be meant."""
    found = [validity.problem(annotations)]
    try:
        rotation.request(annotations)
    except HcpError as exc:
        found.append(str(exc))
    return [text for text in found if text]


async def run(scope: Scope) -> Learned:
    """Advance every authority that can; the change of its Secret starts the next pass."""
    try:
        asked = rotation.request(scope.params.annotations)
    except HcpError:
        # Told by `problems`. What was begun goes on with the usual times.
        asked = Request()
    # Asking who has got what is for those in the middle of something: to begin, nobody is waited for.
    waiting = _waiting(scope) if any(one.stage for one in scope.authorities.values()) else []
    now = dt.datetime.now(dt.UTC)
    before, found = scope.authorities, dict(scope.authorities)
    again: float | None = None
    for name, authority in before.items():
        after = rotation.advance(scope.params, name, before, asked, now, settled=not waiting)
        if after != authority:
            if await _write(scope, name, authority, after):
                found[name] = after
            again = 0.1
    verdict, left = _report(scope.params, found, asked, waiting, now)
    return Learned(authorities=found, seen={"certificates": verdict}, again=left if again is None else again)


def _waiting(scope: Scope) -> list[str]:
    """Who has not got yet what this pass says."""
    seen = scope.seen
    found = [] if scope.params.foreign_etcd or rolled_out(seen.etcd) else ["etcd"]
    parts = dict.fromkeys((*seen.wanted_deployments, *seen.deployments))
    found += [name for name in parts if not rolled_out(seen.deployments.get(name))]
    return found or scope.tools.guests.unsettled(scope.params.key)


async def _write(scope: Scope, name: str, before: Authority, after: Authority) -> bool:
    """Replace exactly what was looked at: keys are never lost to a cache that lags, nor to another process."""
    live = await scope.ctx.client.get(SECRETS, name, scope.namespace)
    if rotation.read(live) != before:
        return False
    body = rotation.change(live, rotation.manifest(scope.params, name, after))
    made = await scope.ctx.client.patch(SECRETS, name, scope.namespace, body)
    scope.cache.informer(SECRETS).observe(made)
    return True


def _report(
    p: Params, found: Mapping[str, Authority], asked: Request, waiting: list[str], now: dt.datetime
) -> tuple[tuple[bool, str, str] | None, float | None]:
    """What the condition says, and in how many seconds time alone moves something on."""
    touched = {name: one for name, one in found.items() if one.touched}
    if not touched:
        return None, None
    stages = rotation.progress(touched)
    rest = _kubelets_left(p, found, stages, asked, waiting, now)
    if not stages:
        marks = sorted({mark for one in touched.values() for mark in (one.rotated, one.revoked) if mark})
        text = "; ".join([f"Every certificate is as asked for: {', '.join(marks)}", *rest])
        return (True, c.AS_EXPECTED, text), None
    texts = []
    soonest: float | None = None
    for stage, chosen in stages.items():
        until = max(rotation.ends(p, name, found, asked) for name in chosen)
        texts.append(f"{', '.join(chosen)}: {_DOING[stage]}")
        if until > now:
            texts[-1] += f", until {until:%Y-%m-%dT%H:%M:%SZ} at least"
            left = (until - now).total_seconds() + 0.5
            soonest = min(left, soonest or left)
    if waiting:
        texts.append(f"waiting for {', '.join(waiting)}")
    return (False, next(iter(stages)), "; ".join(texts)), soonest


def _kubelets_left(
    p: Params,
    found: Mapping[str, Authority],
    stages: dict[str, list[str]],
    asked: Request,
    waiting: list[str],
    now: dt.datetime,
) -> list[str]:
    """Kubelets take their time to renew; all others need not wait for that, and are told once."""
    kubelets = found.get(rotation.KUBELETS)
    if kubelets is None or not kubelets.touched or kubelets.stage != rotation.REISSUING or waiting:
        return []
    chosen = stages[rotation.REISSUING]
    if now < rotation.started(kubelets) + asked.overlap:
        return []
    chosen.remove(rotation.KUBELETS)
    if not chosen:
        del stages[rotation.REISSUING]
    until = rotation.ends(p, rotation.KUBELETS, found, asked)
    return [f"the former {rotation.KUBELETS} is trusted until {until:%Y-%m-%d}, when every kubelet has renewed"]
