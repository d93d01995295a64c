"""Who wakes a cluster that is not theirs costs its owner money; who marks Routes has the router hold connections."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.router import World, running_world
from tests.support.security.managers import USER
from tests.support.security.route_user import namespace_owner

from hcp.api import names
from hcp.api.paths import annotations_of
from hcp.install import rights
from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden
from hcp.router import manifests, sleep_policy

SINCE = "2026-03-11T19:00:00Z"
HOST = "api.asleep.example.com"
MARKS = (names.MARK_SLEEPS_SINCE, names.MARK_ASKED_FOR)


@dataclass
class Scene:
    """A router with policies, and somebody with every right in one namespace."""

    world: World
    attacker: Client
    team: str
    kubeconfig: Path

    def as_user(self, name: str) -> Client:
        config = load_config(self.kubeconfig)
        return Client(dataclasses.replace(config, auth=dataclasses.replace(config.auth, impersonate=name)))


def route(ns: str, name: str = "mine", **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": ns, "annotations": annotations},
        "spec": {"host": f"{name}.{ns}.example.com", "to": {"kind": "Service", "name": name}},
    }


def marking(mark: str, value: str | None = SINCE) -> dict[str, Any]:
    return {"metadata": {"annotations": {mark: value}}}


@pytest.fixture
async def scene(client: Client, api_server: Path, namespace: str, tmp_path: Path) -> AsyncIterator[Scene]:
    async with running_world(client, namespace, tmp_path, wakes=True) as world:
        for obj in sleep_policy.objects():
            await client.apply(obj)
        attacker, team = await namespace_owner(client, api_server)
        async with attacker:

            async def refused() -> bool:
                try:
                    await attacker.create(route(team, **{MARKS[0]: SINCE}), dry_run=True)
                except Forbidden:
                    return True
                return False

            await eventually(refused, "the policy counts")
            yield Scene(world, attacker, team, api_server)
    for obj in sleep_policy.objects():
        resource = await client.resource_for(obj)
        await client.delete(resource, obj["metadata"]["name"], missing_ok=True)


@pytest.mark.parametrize("mark", MARKS)
async def test_the_owner_of_a_namespace_cannot_write_either_mark(scene: Scene, mark: str) -> None:
    attacker, team = scene.attacker, scene.team
    with pytest.raises(Forbidden, match="only the "):
        await attacker.create(route(team, **{mark: SINCE}))
    # Routes as they were are theirs, with all that is theirs to write.
    await attacker.create(route(team, other="1"))
    with pytest.raises(Forbidden, match="only the "):
        await attacker.patch(r.ROUTES, "mine", team, marking(mark))
    with pytest.raises(Forbidden, match="only the "):
        await attacker.apply(route(team, **{mark: SINCE}), manager="attacker")
    await attacker.patch(r.ROUTES, "mine", team, marking("other", "2"))
    # Nor what somebody else wrote there: neither another date nor none.
    await scene.world.client.patch(r.ROUTES, "mine", team, marking(mark))
    for value in ("2030-01-01T00:00:00Z", None):
        with pytest.raises(Forbidden, match="only the "):
            await attacker.patch(r.ROUTES, "mine", team, marking(mark, value))
    await attacker.patch(r.ROUTES, "mine", team, marking("other", "3"))
    await attacker.delete(r.ROUTES, "mine", team)


async def test_the_operator_cannot_ask_and_the_router_cannot_mark(scene: Scene) -> None:
    """With the rights that `hcp install` gives them, and no others."""
    admin, ns = scene.world.client, scene.world.namespace
    account, bound = "hcp-test-operator", f"{ns}-operator"
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rules = rights.operator_rules()
    made = [
        {**rbac, "kind": "ClusterRole", "metadata": {"name": bound}, "rules": rules},
        {
            **rbac,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": bound},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": bound},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": account}],
        },
        manifests.namespace(),
        *manifests.rights(),
    ]
    for obj in made:
        await admin.apply(obj)
    await admin.create(route(ns))
    router = USER.replace(names.OPERATOR_NAMESPACE, names.ROUTER_NAMESPACE).format(manifests.NAME)
    async with scene.as_user(account) as operator, scene.as_user(router) as routing:
        for who in (operator, routing):
            await eventually(lambda one=who: one.allowed("patch", r.ROUTES, ns), "its rights count")  # type: ignore[misc]
        with pytest.raises(Forbidden, match="only the router"):
            await operator.patch(r.ROUTES, "mine", ns, marking(names.MARK_ASKED_FOR))
        with pytest.raises(Forbidden, match="only the operator"):
            await routing.patch(r.ROUTES, "mine", ns, marking(names.MARK_SLEEPS_SINCE))
        await operator.patch(r.ROUTES, "mine", ns, marking(names.MARK_SLEEPS_SINCE))
        await routing.patch(r.ROUTES, "mine", ns, marking(names.MARK_ASKED_FOR))
        await operator.patch(r.ROUTES, "mine", ns, marking(names.MARK_SLEEPS_SINCE, None))


async def test_neither_the_same_host_nor_a_wildcard_of_another_namespace_wakes_it(scene: Scene) -> None:
    """Nor does it get the connections that wait."""
    world = scene.world
    await world.service("api")
    await world.route("api", "api", host=HOST)
    await world.admitted("api")
    await world.client.patch(r.ROUTES, "api", world.namespace, marking(names.MARK_SLEEPS_SINCE))

    async def known() -> bool:
        return f" {HOST} 1" in await world.process.command("show map tls-asleep.map")

    await eventually(known, "HAProxy knows that it sleeps")
    waiting = asyncio.create_task(world.greeting(HOST))
    await eventually(lambda: _held(world), "it waits")
    thief = dataclasses.replace(world, client=scene.attacker, namespace=scene.team)
    await world.service("thief", await world.backend("thief"), ns=scene.team)
    await thief.route("same", "thief", host=HOST)
    await thief.route("all", "thief", host="x.asleep.example.com", wildcardPolicy="Subdomain")
    assert (await thief.admitted("same"))["reason"] == "HostAlreadyClaimed"
    await thief.reaches("beside.asleep.example.com", "thief")
    assert not waiting.done()
    assert names.MARK_ASKED_FOR not in annotations_of(await scene.attacker.get(r.ROUTES, "same", scene.team))
    await world.service("api", await world.backend("api"))
    assert await waiting == "api"


async def _held(world: World) -> bool:
    return world.router.sleepers.held == 1
