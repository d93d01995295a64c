"""Whose tokens the API server believes. The file is there before it starts, and it reads it again when it changes."""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import authentication, oauth
from hcp.controlplane.params import Manifest
from hcp.hostedcluster import login
from hcp.hostedcluster.observed import LoginState
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import CONFIGMAPS, DEPLOYMENTS
from hcp.runtime.workloads import serving

_PROVIDERS = "configuration.authentication.oidcProviders"


async def run(scope: Scope) -> Learned | None:
    if not scope.params.authentication_file:
        return None
    seen: dict[str, Any] = {}
    if authentication.is_direct(scope.spec):
        issuers, problems = await _direct(scope)
        seen["login"] = LoginState(direct=True, problems=tuple(problems))
        if problems and scope.cache.get(CONFIGMAPS, authentication.CONFIG, scope.namespace) is not None:
            # What worked stays: the API server would not start with what it cannot read.
            return Learned(seen=seen)
    else:
        issuers = _own(scope)
    manifest = authentication.config(scope.params, issuers)
    await scope.cache.apply(manifest)
    return Learned(made=(manifest,), seen=seen)


async def _direct(scope: Scope) -> tuple[list[Manifest], list[str]]:
    provider = (at(scope.spec, _PROVIDERS) or [{}])[0]
    name = at(provider, "issuer.issuerCertificateAuthority.name")
    ca: str | None = ""
    if name:
        found = await scope.cache.user_object(CONFIGMAPS, name, scope.params.cluster_namespace)
        ca = ((found or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
    problems = authentication.problems(scope.spec, scope.params.issuer_url, ca)
    return ([] if problems else [authentication.direct(provider, ca or "")]), problems


def _own(scope: Scope) -> list[Manifest]:
    """From the moment it first answers; that it is being replaced changes nothing."""
    server = scope.cache.get(DEPLOYMENTS, oauth.COMPONENT, scope.namespace)
    where = login.endpoint(scope)
    if not login.wanted(scope) or server is None or where is None:
        return []
    issuer = oauth.issuer(where)
    live = scope.cache.get(CONFIGMAPS, authentication.CONFIG, scope.namespace)
    known = issuer in (at(live, "data") or {}).get(authentication.FILE, "")
    return [authentication.own(issuer, scope.authorities["root-ca"].trusted)] if known or serving(server) else []
