"""Authorities that nodes get by their documents: of the guest's proxy and of registries. Here it is told whether they
are there; node pools take them."""

from __future__ import annotations

from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.hostedcluster.scope import Learned, Scope
from hcp.kube.resources import CONFIGMAPS
from hcp.pki import readable_certificates

PROXY, REGISTRIES = "configuration.proxy.trustedCA", "configuration.image.additionalTrustedCA"


async def run(scope: Scope) -> Learned | None:
    seen: dict[str, Any] = {}
    if scope.seen.proxy is not None and (problem := await _problem(scope, PROXY, names.CA_BUNDLE_KEY)):
        seen["proxy"] = (*scope.seen.proxy, problem)
    if problem := await _problem(scope, REGISTRIES):
        seen["registry_ca_problem"] = problem
    return Learned(seen=seen) if seen else None


async def _problem(scope: Scope, field: str, key: str = "") -> str:
    """Why the ConfigMap of a field is of no use. Without a key, every key is one registry's."""
    name, ns = at(scope.spec, f"{field}.name"), scope.params.cluster_namespace
    if not name:
        return ""
    source = await scope.cache.user_object(CONFIGMAPS, str(name), ns)
    data = (source or {}).get("data") or {}
    texts = {key: data.get(key)} if key else data
    if source is None or not texts or not all(texts.values()):
        return f"{field}: the ConfigMap {ns}/{name}{f' with key {key}' if key else ''} does not exist"
    unreadable = sorted(one for one, text in texts.items() if not readable_certificates(str(text).encode()))
    if unreadable:
        return f"{field}: no certificates are in {', '.join(unreadable)} of the ConfigMap {ns}/{name}"
    return ""
