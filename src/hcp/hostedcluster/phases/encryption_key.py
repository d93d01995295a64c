"""The key for what etcd stores, and its change while the cluster runs: step by step, one step a pass."""

from __future__ import annotations

import base64
import binascii
import secrets as random

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import apiserver, apiserver_config, encryption
from hcp.errors import HcpError
from hcp.hostedcluster import defaults, given
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.hostedcluster.translate import owner_of
from hcp.kube.resources import DEPLOYMENTS, SECRETS
from hcp.runtime.workloads import rolled_out

KEY_BYTES = 32


async def run(scope: Scope) -> Learned:
    """Give the API servers the keys they need now."""
    aescbc = (scope.spec.get("secretEncryption") or {}).get("aescbc") or {}
    name = at(aescbc, "activeKey.name") or defaults.encryption_key_name(scope.params.name)
    active = await _active(scope, name)
    backup = at(aescbc, "backupKey.name")
    others = [await _key(scope, backup)] if backup else []
    live = scope.cache.get(SECRETS, apiserver_config.ENCRYPTION, scope.namespace)
    deployment = scope.cache.get(DEPLOYMENTS, apiserver.COMPONENT, scope.namespace)
    generation = int(at(deployment, "metadata.generation") or 0)
    since = encryption.changed_at(live)
    have = encryption.keys_of(live)
    step = encryption.next_step(
        have,
        active,
        others,
        rolled_out=generation > since and rolled_out(deployment),
        rewritten=scope.seen.rewritten == encryption.fingerprint(active),
    )
    if have and list(step.keys) != have:
        since = generation
    manifest = encryption.manifest(scope.params, step.keys, since)
    await scope.cache.apply(manifest)
    mark = encryption.fingerprint(active)
    rewrite = mark if step.state == encryption.REWRITE else ""
    seen = {"encryption": step.state, "encryption_key": (name, mark), "rewrite": rewrite}
    return Learned(made=(manifest,), seen=seen)


async def _active(scope: Scope, name: str) -> bytes:
    """The user's key, or ours, made once beside the HostedCluster."""
    p = scope.params
    own = defaults.encryption_key_name(p.name)
    if name == own and await scope.cache.user_object(SECRETS, own, p.cluster_namespace) is None:
        # What was made is read from the answer: watches tell of it a moment later.
        return _bytes_of(await scope.cache.create_once(_new_key(scope, own)))
    return await _key(scope, name)


async def _key(scope: Scope, name: str) -> bytes:
    hint = "Create it with 32 random bytes under that key; the cluster goes on by itself."
    return _bytes_of(await given.secret(scope, name, names.ETCD_KEY_KEY, hint))


def _bytes_of(source: Object) -> bytes:
    where = f"{source['metadata']['namespace']}/{source['metadata']['name']}"
    try:
        key = base64.b64decode(source["data"][names.ETCD_KEY_KEY])
    except binascii.Error as exc:
        raise HcpError(f"The key in Secret {where} cannot be read", cause=str(exc)) from exc
    if len(key) != KEY_BYTES:
        raise HcpError(f"The key in Secret {where} has {len(key)} bytes, {KEY_BYTES} are needed")
    return key


def _new_key(scope: Scope, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": scope.params.cluster_namespace,
            "labels": {names.LABEL_CONTROL_PLANE_NAMESPACE: scope.namespace},
            "ownerReferences": [owner_of(scope.cluster)],
        },
        "type": "Opaque",
        "data": {names.ETCD_KEY_KEY: base64.b64encode(random.token_bytes(KEY_BYTES)).decode()},
    }
