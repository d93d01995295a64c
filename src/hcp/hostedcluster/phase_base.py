"""The first phases: namespace, projection, copies of what the user gave."""

from __future__ import annotations

import asyncio
import base64

from hcp.api import conditions as c
from hcp.api import names
from hcp.controlplane import audit, copies
from hcp.controlplane.hostedcontrolplane import hosted_control_plane
from hcp.controlplane.namespace import UID_ANNOTATION, bare_namespace, free_uid, namespace
from hcp.errors import HcpError
from hcp.hostedcluster.releases import MissingInput, sentence
from hcp.hostedcluster.scope import Object, Scope
from hcp.hostedcluster.translate import owner_of
from hcp.kube import found_config
from hcp.kube.errors import AlreadyExists
from hcp.kube.resources import CONFIGMAPS, NAMESPACES, SCCS, SECRETS
from hcp.pki import new_signing_key
from hcp.runtime.phases import Waiting

# User ids are given out one at a time.
_uids = asyncio.Lock()


async def hosted_namespace(scope: Scope) -> None:
    """The namespace, with a user id of its own where no SCC gives one."""
    live = scope.claim.namespace
    if live is not None and live["metadata"].get("deletionTimestamp"):
        raise Waiting("NamespaceTerminating", f"Namespace {scope.namespace} is still being deleted")
    if live is None:
        live = await _new_namespace(scope)
    async with _uids:
        uid = _uid(live)
        if uid is None and not await scope.ctx.client.has(SCCS):
            taken = (_uid(n) for n in scope.cache.list(NAMESPACES))
            uid = free_uid(u for u in taken if u is not None)
        scope.change(uid=uid)
        await scope.cache.apply(namespace(scope.params, live["metadata"]["uid"]))


async def _new_namespace(scope: Scope) -> Object:
    try:
        return await scope.ctx.client.create(bare_namespace(scope.params))
    except AlreadyExists as exc:
        raise HcpError(f"Somebody else has just made the namespace {scope.namespace}") from exc


def _uid(live: Object | None) -> int | None:
    text = ((live or {}).get("metadata", {}).get("annotations") or {}).get(UID_ANNOTATION, "")
    return int(text) if text.isdigit() else None


async def projection(scope: Scope) -> None:
    """The HostedControlPlane; everything else in the namespace is owned by it."""
    live = await scope.cache.apply(hosted_control_plane(scope.params, scope.cluster))
    scope.change(owner=owner_of(live))


async def user_copies(scope: Scope) -> None:
    """Pull secret, SSH key, trust bundle and infra credentials, from the HostedCluster's namespace."""
    wanted: list[Object] = []
    problems: list[str] = []
    p, spec = scope.params, scope.spec
    try:
        wanted.append(copies.pull_secret(p, await _secret(scope, spec["pullSecret"]["name"], names.PULL_SECRET_KEY)))
    except MissingInput as exc:
        problems.append(sentence(exc))
    if name := (spec.get("sshKey") or {}).get("name"):
        try:
            wanted.append(copies.copied_secret(p, await _secret(scope, name, names.SSH_KEY_KEY), "ssh-key", "Opaque"))
        except MissingInput as exc:
            problems.append(sentence(exc))
    if name := (spec.get("additionalTrustBundle") or {}).get("name"):
        found = await scope.cache.user_object(CONFIGMAPS, name, p.cluster_namespace)
        bundle = ((found or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
        if bundle:
            wanted.append(copies.user_ca_bundle(p, bundle))
        else:
            problems.append(f"The ConfigMap {p.cluster_namespace}/{name} with key {names.CA_BUNDLE_KEY} does not exist")
    credentials = ((spec.get("platform") or {}).get("kubevirt") or {}).get("credentials") or {}
    if ref := credentials.get("infraKubeConfigSecret"):
        wanted += await _credentials(scope, ref, str(credentials.get("infraNamespace") or p.namespace))
    await asyncio.gather(*(scope.apply(o) for o in wanted))
    if problems:
        scope.seen.config_reason = "SecretNotFound"
        scope.seen.config_problems += problems


async def _credentials(scope: Scope, ref: dict[str, str], infra_namespace: str) -> list[Object]:
    """The kubeconfig of the infra cluster, written anew from what was understood of the user's.

    Cluster API's provider loads whatever it is given, so the user's own text never gets near it. While the user's is
    refused, the last good copy stays; one that would be refused itself goes.
    """
    name, key = ref.get("name", ""), ref.get("key") or names.KUBECONFIG_KEY
    try:
        source = await _secret(scope, name, key)
    except MissingInput as exc:
        scope.seen.credentials_problem = sentence(exc)
        return []
    where = f"The kubeconfig in Secret {scope.params.cluster_namespace}/{name}"
    try:
        kubeconfig = found_config.plain_text(base64.b64decode(source["data"][key]), where)
    except HcpError as exc:
        scope.seen.credentials_problem, scope.seen.credentials_reason = sentence(exc), c.INVALID_PLATFORM_CREDENTIALS
        await _drop_unsafe_copy(scope)
        return []
    scope.seen.credentials_problem = ""
    return [copies.infra_credentials(scope.params, kubeconfig, infra_namespace)]


async def _drop_unsafe_copy(scope: Scope) -> None:
    live = scope.cache.get(SECRETS, names.INFRA_CREDENTIALS, scope.namespace)
    text = ((live or {}).get("data") or {}).get(names.KUBECONFIG_KEY)
    if live is None or not text:
        return
    try:
        found_config.load(base64.b64decode(text))
    except HcpError:
        await scope.cache.remove(SECRETS, names.INFRA_CREDENTIALS, scope.namespace)


async def _secret(scope: Scope, name: str, key: str) -> Object:
    ns = scope.params.cluster_namespace
    found = await scope.cache.user_object(SECRETS, name, ns)
    if found is None or not (found.get("data") or {}).get(key):
        raise MissingInput(
            f"The Secret {ns}/{name} with key {key} does not exist", hint="Create it; the cluster goes on by itself."
        )
    return found


async def audit_webhook(scope: Scope) -> None:
    """Where audit events go. Without it no API server is started: who asks for it wants no request to be missed."""
    if name := (scope.spec.get("auditWebhook") or {}).get("name"):
        source = await _secret(scope, name, audit.WEBHOOK_KEY)
        where = f"The kubeconfig in Secret {scope.params.cluster_namespace}/{name}"
        data = base64.b64decode(source["data"][audit.WEBHOOK_KEY])
        await scope.apply(audit.webhook_secret(scope.params, found_config.plain_text(data, where)))


async def signing_key(scope: Scope) -> None:
    """The key for service account tokens: the user's, or one made once."""
    p = scope.params
    if name := (scope.spec.get("serviceAccountSigningKey") or {}).get("name"):
        source = await _secret(scope, name, "key")
        old = base64.b64decode(source["data"].get("old-key.pub", ""))
        await scope.apply(copies.signing_key(p, base64.b64decode(source["data"]["key"]), old))
        return
    live = scope.cache.get(SECRETS, copies.SIGNING_KEY, p.namespace)
    if live is None:
        live = await scope.cache.create_once(copies.signing_key(p, new_signing_key()))
    scope.remember(live)
