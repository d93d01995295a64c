"""The OAuth server, from the first node or identity provider on: before that nobody would log in."""

from __future__ import annotations

import asyncio

from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.controlplane import htpasswd, identity_providers, monitors, oauth, services
from hcp.controlplane.identity_providers import Providers
from hcp.controlplane.meta import config_hash, secret_data
from hcp.hostedcluster import login
from hcp.hostedcluster.leaves import leaves
from hcp.hostedcluster.observed import LoginState
from hcp.hostedcluster.scope import Learned, Object, Scope
from hcp.hostedcluster.translate import owner_of
from hcp.kube.resources import DEPLOYMENTS, PODMONITORS, ROUTES, SECRETS

# Of the password's Secret: the guest has it; somebody has deleted it there.
GIVEN, REMOVED = "given", "removed"
_NO_ROUTES = (
    "OAuthServer is published by a Route, but this management cluster has no Routes: install the router (hcp install) "
    "or choose LoadBalancer or NodePort"
)


async def run(scope: Scope) -> Learned | None:
    if scope.claim.foreign or not scope.startable:
        return None
    live = scope.cache.get(DEPLOYMENTS, oauth.COMPONENT, scope.namespace)
    if not login.wanted(scope):
        if live is not None:
            await _end(scope)
        return Learned(seen={"login": scope.seen.login or LoginState()})
    guest = scope.tools.guests.state(scope.params.key).guest
    if live is None and not login.providers(scope.spec) and not (guest and guest.nodes):
        return Learned(seen={"login": LoginState()})
    if scope.params.published("OAuthServer").type == "Route" and not await scope.ctx.client.has(ROUTES):
        return Learned(seen={"login": LoginState(server=True, waiting=_NO_ROUTES)})
    await _publish(scope)
    where = login.endpoint(scope)
    if where is None:
        return Learned(seen={"login": LoginState(server=True, waiting=services.waiting_for_login(scope.params))})
    issuer = oauth.issuer(where)
    found = identity_providers.build(login.providers(scope.spec), await login.given(scope), issuer)
    password, given = await _kubeadmin(scope)
    made = await _server(scope, found, password) if password or found.users or found.connectors else ()
    if not made and live is not None:
        await _end(scope)
    running = scope.cache.get(DEPLOYMENTS, oauth.COMPONENT, scope.namespace)
    state = LoginState(
        server=True,
        deployment=running,
        problems=tuple(found.problems),
        notes=tuple(found.notes),
        callback=f"{issuer}/callback",
        kubeadmin=f"{scope.params.name}-{names.KUBEADMIN_PASSWORD}" if password else "",
        kubeadmin_hash=oauth.kubeadmin_hash(scope.params, password) if password else "",
        given=given,
    )
    deployments = scope.seen.deployments if running is None else {**scope.seen.deployments, oauth.COMPONENT: running}
    partly = [*scope.seen.partly_acted, *found.notes]
    return Learned(made=made, seen={"login": state, "deployments": deployments, "partly_acted": partly})


async def _publish(scope: Scope) -> None:
    p = scope.params
    publishing = p.published("OAuthServer")
    objects = [oauth.service(p)]
    if publishing.type == "Route":
        objects.append(services.route(p, publishing, names.OAUTH_ROUTE, oauth.COMPONENT, "https"))
    if (policy := oauth.policy(p)) is not None:
        objects.append(policy)
    await asyncio.gather(*(scope.cache.apply(one) for one in objects))


async def _server(scope: Scope, found: Providers, password: str) -> tuple[Object, ...]:
    p, where = scope.params, login.endpoint(scope)
    if where is None:
        return ()
    await leaves(scope, [oauth.leaf(where, p.namespace)])
    config = oauth.config(p, scope.spec, where, found, kubeadmin=bool(password))
    users = oauth.users(p, found, password)
    await asyncio.gather(scope.cache.apply(config), scope.cache.apply(users))
    if await scope.ctx.client.has(PODMONITORS):
        await scope.cache.apply(monitors.of_login(p, str(at(scope.spec, "monitoring.metricsSet") or "")))
    await scope.cache.apply(oauth.deployment(p, config_hash([config]), outside=oauth.asks_outside(found)))
    return config, users


async def _end(scope: Scope) -> None:
    """The Deployment last: it tells that there is something to end."""
    if await scope.ctx.client.has(PODMONITORS):
        await scope.cache.remove(PODMONITORS, oauth.COMPONENT, scope.namespace)
    await scope.cache.remove(DEPLOYMENTS, oauth.COMPONENT, scope.namespace)


async def _kubeadmin(scope: Scope) -> tuple[str, bool]:
    """Its password, empty where it has none (any more), and whether the guest was given its hash."""
    p, ns = scope.params, scope.namespace
    live = scope.cache.get(SECRETS, names.KUBEADMIN_PASSWORD, ns)
    if not login.kubeadmin_wanted(scope.spec):
        if live is not None:
            await scope.cache.remove(SECRETS, names.KUBEADMIN_PASSWORD, ns)
        await _forget(scope)
        return "", False
    if live is None:
        live = await scope.cache.create_once(oauth.password_secret(p, htpasswd.new_password()))
    mark = annotations_of(live).get(names.MARK_KUBEADMIN, "")
    guest = scope.tools.guests.state(p.key).guest
    there = guest.kubeadmin if guest is not None else None
    password = secret_data(live).get(names.KUBEADMIN_KEY, b"").decode()
    if mark == REMOVED or (mark == GIVEN and there is False):
        await _mark(scope, "", REMOVED)
        await _forget(scope)
        return "", True
    if there and mark != GIVEN:
        await _mark(scope, password, GIVEN)
        mark = GIVEN
    await scope.cache.apply(oauth.password_for_users(p, password, owner_of(scope.cluster)))
    return password, mark == GIVEN


async def _mark(scope: Scope, password: str, mark: str) -> None:
    manifest = oauth.password_secret(scope.params, password)
    manifest["metadata"]["annotations"] = {names.MARK_KUBEADMIN: mark}
    await scope.cache.apply(manifest)


async def _forget(scope: Scope) -> None:
    name, ns = f"{scope.params.name}-{names.KUBEADMIN_PASSWORD}", scope.params.cluster_namespace
    if scope.cache.get(SECRETS, name, ns) is not None:
        await scope.cache.remove(SECRETS, name, ns)
