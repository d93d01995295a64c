"""Tokens of older configurations end after a grace time, and user data that no machine refers to goes."""

from __future__ import annotations

from hcp.api.names import ANNOTATION_IGNITION_TOKEN_EXPIRY
from hcp.api.paths import at
from hcp.ignition import store
from hcp.ignition.tokens import GRACE_AFTER_ROLLOUT, stamp
from hcp.kube.resources import SECRETS
from hcp.nodepool.scope import Learned, Object, Scope
from hcp.nodepool.secrets import TOKEN_PREFIX, expiry, token_name, user_data_name


async def run(scope: Scope) -> Learned | None:
    if scope.config is None or scope.paused:
        return None
    watches, target = scope.tools.watches, scope.config.target
    current = {token_name(scope.name, target), user_data_name(scope.name, target)}
    used = _used(scope)
    soonest: float | None = None
    for secret in watches.of_pool(watches.secrets, scope.key):
        name = secret["metadata"]["name"]
        if name in current or secret["metadata"]["namespace"] != scope.hosted:
            continue
        if name.startswith(TOKEN_PREFIX):
            left = await _end(scope, secret)
            soonest = left if soonest is None or (left is not None and left < soonest) else soonest
        elif name not in used:
            await _drop(scope, name, scope.hosted)
    return None if soonest is None else Learned(again=soonest)


def _used(scope: Scope) -> set[object]:
    """User data of machines that are there, or that a MachineSet may still make."""
    watches = scope.tools.watches
    sets = watches.of_pool(watches.sets, scope.key)
    machines = [*watches.of_pool(watches.machines, scope.key), *sets]
    making = [item for item in sets if int(at(item, "spec.replicas", 0)) > 0]
    return {at(item, "spec.bootstrap.dataSecretName") for item in machines} | {
        at(item, "spec.template.spec.bootstrap.dataSecretName") for item in making
    }


async def _end(scope: Scope, secret: Object) -> float | None:
    """Seconds a token has left; it gets an end, and at that end it goes with its document."""
    name, document = secret["metadata"]["name"], _document_of(scope, secret["metadata"]["name"])
    ends = expiry(secret)
    if ends is None:
        ends = scope.now + GRACE_AFTER_ROLLOUT
        body = {"metadata": {"annotations": {ANNOTATION_IGNITION_TOKEN_EXPIRY: stamp(ends)}}}
        await scope.ctx.client.patch(SECRETS, name, scope.hosted, body)
        if scope.tools.watches.documents.get(document, scope.ctx.namespace) is not None:
            await scope.ctx.client.patch(SECRETS, document, scope.ctx.namespace, body)
    if ends > scope.now:
        return (ends - scope.now).total_seconds() + 1
    await _drop(scope, document, scope.ctx.namespace)
    await _drop(scope, name, scope.hosted)
    return None


def _document_of(scope: Scope, token: str) -> str:
    return store.secret_name(scope.hosted, scope.name, token.removeprefix(f"{TOKEN_PREFIX}{scope.name}-"))


async def _drop(scope: Scope, name: str, namespace: str) -> None:
    await scope.ctx.client.delete(SECRETS, name, namespace, missing_ok=True)
