"""What a pass knows about logging in to its cluster: whether there is an OAuth server, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import authentication, oauth, services
from hcp.controlplane.identity_providers import Given, references
from hcp.controlplane.meta import secret_data
from hcp.controlplane.params import LOGIN_IMAGE, Endpoint
from hcp.guest.login_plan import GuestLogin
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import CONFIGMAPS, ROUTES, SECRETS, SERVICES

_OAUTH = "configuration.oauth"


def wanted(scope: Scope) -> bool:
    return LOGIN_IMAGE in scope.params.images and authentication.integrated(scope.spec)


def providers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(at(spec, f"{_OAUTH}.identityProviders") or [])


def kubeadmin_wanted(spec: Mapping[str, Any]) -> bool:
    """Whoever sets up OAuth has users of their own, as HyperShift sees it."""
    return not at(spec, _OAUTH)


def endpoint(scope: Scope) -> Endpoint | None:
    """Where it is published, from what is followed anyway."""
    p, ns = scope.params, scope.namespace
    service = scope.cache.get(SERVICES, oauth.COMPONENT, ns)
    route = scope.cache.get(ROUTES, names.OAUTH_ROUTE, ns)
    return services.endpoint(p.published("OAuthServer"), service, route)


async def given(scope: Scope) -> Given:
    """The Secrets and ConfigMaps that identity providers name."""
    found: dict[tuple[str, str], Mapping[str, bytes]] = {}
    ns = scope.params.cluster_namespace
    for kind, name in references(providers(scope.spec)):
        resource = SECRETS if kind == "Secret" else CONFIGMAPS
        live = await scope.cache.user_object(resource, name, ns)
        if live is None:
            continue
        plain = {key: str(value).encode() for key, value in (live.get("data") or {}).items()}
        found[(kind, name)] = secret_data(live) if kind == "Secret" else plain
    return found


def inside(scope: Scope) -> GuestLogin | None:
    """What the guest's own parts need to know; None where nobody logs in."""
    seen = scope.seen.login
    return GuestLogin(seen.kubeadmin_hash, seen.given) if seen is not None and seen.server else None
