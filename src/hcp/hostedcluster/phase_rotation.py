"""The step at the end of a pass that moves certificate authorities on, when everybody has got what came before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hcp.api import conditions as c
from hcp.controlplane import rotation, validity
from hcp.controlplane.rotation import Authority, Request
from hcp.errors import HcpError
from hcp.hostedcluster.hosted_api import HostedApi
from hcp.hostedcluster.scope import Scope
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


async def rotate(scope: Scope, api: HostedApi) -> None:
    """Advance every authority that can; the change of its Secret starts the next pass."""
    try:
        asked = rotation.request(scope.params.annotations)
    except HcpError:
        # Told by `problems`. What was begun goes on with the usual times.
        asked = Request()
    # Asking who has got what is for those in the middle of something: to begin, nobody is waited for.
    waiting = _waiting(scope, api) if any(one.stage for one in scope.authorities.values()) else []
    now = dt.datetime.now(dt.UTC)
    before = dict(scope.authorities)
    for name, authority in before.items():
        after = rotation.advance(scope.params, name, before, asked, now, settled=not waiting)
        if after != authority:
            await _write(scope, name, authority, after)
            scope.again = 0.1
    _report(scope, asked, waiting, now)


def _waiting(scope: Scope, api: HostedApi) -> list[str]:
    """Who has not got yet what this pass says."""
    seen = scope.seen
    found = [] if rolled_out(seen.etcd) else ["etcd"]
    found += [name for name in seen.wanted_deployments if not rolled_out(seen.deployments.get(name))]
    return found or api.unsettled(scope.params.key)


async def _write(scope: Scope, name: str, before: Authority, after: Authority) -> None:
    """Replace exactly what was looked at: keys are never lost to a cache that lags, nor to another process."""
    live = await scope.ctx.client.get(SECRETS, name, scope.namespace)
    if rotation.read(live) != before:
        return
    body = rotation.change(live, rotation.manifest(scope.params, name, after))
    made = await scope.ctx.client.patch(SECRETS, name, scope.namespace, body)
    scope.cache.informer(SECRETS).observe(made)
    scope.authorities[name] = after


def _report(scope: Scope, asked: Request, waiting: list[str], now: dt.datetime) -> None:
    touched = {name: one for name, one in scope.authorities.items() if one.touched}
    if not touched:
        return
    stages = rotation.progress(touched)
    rest = _kubelets_left(scope, touched, stages, asked, waiting, now)
    if not stages:
        marks = sorted({mark for one in touched.values() for mark in (one.rotated, one.revoked) if mark})
        text = "; ".join([f"Every certificate is as asked for: {', '.join(marks)}", *rest])
        scope.seen.certificates = (True, c.AS_EXPECTED, text)
        return
    texts = []
    for stage, chosen in stages.items():
        until = max(rotation.ends(scope.params, name, scope.authorities, asked) for name in chosen)
        texts.append(f"{', '.join(chosen)}: {_DOING[stage]}")
        if until > now:
            texts[-1] += f", until {until:%Y-%m-%dT%H:%M:%SZ} at least"
            left = (until - now).total_seconds() + 0.5
            scope.again = min(left, scope.again or left)
    if waiting:
        texts.append(f"waiting for {', '.join(waiting)}")
    scope.seen.certificates = (False, next(iter(stages)), "; ".join(texts))


def _kubelets_left(
    scope: Scope,
    touched: Mapping[str, Authority],
    stages: dict[str, list[str]],
    asked: Request,
    waiting: list[str],
    now: dt.datetime,
) -> list[str]:
    """Kubelets take their time to renew; all others need not wait for that, and are told once."""
    kubelets = touched.get(rotation.KUBELETS)
    if kubelets is None or kubelets.stage != rotation.REISSUING or waiting:
        return []
    chosen = stages[rotation.REISSUING]
    if now < rotation.started(kubelets) + asked.overlap:
        return []
    chosen.remove(rotation.KUBELETS)
    if not chosen:
        del stages[rotation.REISSUING]
    until = rotation.ends(scope.params, rotation.KUBELETS, scope.authorities, asked)
    return [f"the former {rotation.KUBELETS} is trusted until {until:%Y-%m-%d}, when every kubelet has renewed"]
