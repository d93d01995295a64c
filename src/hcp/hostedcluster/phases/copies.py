"""Pull secret, SSH key, trust bundle and infra credentials, from the HostedCluster's namespace."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import copies
from hcp.errors import HcpError, sentence
from hcp.hostedcluster import given
from hcp.hostedcluster.releases import MissingInput
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Object, Scope
from hcp.kube import untrusted_kubeconfig
from hcp.kube.resources import CONFIGMAPS, SECRETS


async def run(scope: Scope) -> Learned:
    wanted: list[Object] = []
    problems: list[str] = []
    seen: dict[str, Any] = {}
    p, spec = scope.params, scope.spec
    try:
        pull_secret = await given.secret(scope, spec["pullSecret"]["name"], names.PULL_SECRET_KEY)
        wanted.append(copies.pull_secret(p, pull_secret))
    except MissingInput as exc:
        problems.append(sentence(exc))
    if name := at(spec, "sshKey.name"):
        try:
            key = await given.secret(scope, name, names.SSH_KEY_KEY)
            wanted.append(copies.copied_secret(p, key, "ssh-key", "Opaque"))
        except MissingInput as exc:
            problems.append(sentence(exc))
    if name := at(spec, "additionalTrustBundle.name"):
        found = await scope.cache.user_object(CONFIGMAPS, name, p.cluster_namespace)
        bundle = ((found or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
        if bundle:
            wanted.append(copies.user_ca_bundle(p, bundle))
        else:
            problems.append(f"The ConfigMap {p.cluster_namespace}/{name} with key {names.CA_BUNDLE_KEY} does not exist")
    credentials = at(spec, "platform.kubevirt.credentials") or {}
    if ref := credentials.get("infraKubeConfigSecret"):
        copied, seen = await _credentials(scope, ref, str(credentials.get("infraNamespace") or p.namespace))
        wanted += copied
    await asyncio.gather(*(scope.cache.apply(o) for o in wanted))
    if problems:
        seen |= {"config_reason": c.SECRET_NOT_FOUND, "config_problems": tuple(problems)}
    return Learned(made=tuple(wanted), seen=seen, again=LOOK_AGAIN if problems else None)


async def _credentials(scope: Scope, ref: dict[str, str], infra_namespace: str) -> tuple[list[Object], dict[str, Any]]:
    """The kubeconfig of the infra cluster, written anew from what was understood of the user's.

    Cluster API's provider loads whatever it is given, so the user's own text never gets near it. While the user's is
    refused, the last good copy stays; one that would be refused itself goes.
    """
    name, key = ref.get("name", ""), ref.get("key") or names.KUBECONFIG_KEY
    try:
        source = await given.secret(scope, name, key)
    except MissingInput as exc:
        return [], {"credentials_problem": sentence(exc)}
    where = f"The kubeconfig in Secret {scope.params.cluster_namespace}/{name}"
    try:
        kubeconfig = untrusted_kubeconfig.plain_text(base64.b64decode(source["data"][key]), where)
    except HcpError as exc:
        await _drop_unsafe_copy(scope)
        return [], {"credentials_problem": sentence(exc), "credentials_reason": c.INVALID_PLATFORM_CREDENTIALS}
    return [copies.infra_credentials(scope.params, kubeconfig, infra_namespace)], {"credentials_problem": ""}


async def _drop_unsafe_copy(scope: Scope) -> None:
    live = scope.cache.get(SECRETS, names.INFRA_CREDENTIALS, scope.namespace)
    text = ((live or {}).get("data") or {}).get(names.KUBECONFIG_KEY)
    if live is None or not text:
        return
    try:
        untrusted_kubeconfig.load(base64.b64decode(text))
    except HcpError:
        await scope.cache.remove(SECRETS, names.INFRA_CREDENTIALS, scope.namespace)
