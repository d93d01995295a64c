"""A Route that asks for a host which another namespace has: by age, by an edit, by a forged status, by a wildcard."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, running_world
from tests.support.security.route_user import namespace_owner

from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kube.errors import ApiError, Forbidden
from hcp.router import status_policy

HOST = "kube-apiserver.victim.example.com"


@dataclasses.dataclass
class Scene:
    """The victim's namespace is the world's own; `attacker` may do anything in `team`, and nothing elsewhere."""

    world: World
    attacker: Client
    team: str

    async def victim(self, name: str = "api", host: str = HOST, **spec: Any) -> None:
        """The victim's Route leads to its own server."""
        await self.world.service(name, await self.world.backend(name))
        await self.world.route(name, name, host=host, **spec)
        assert (await self.world.admitted(name))["status"] == "True"
        await self.world.reaches(host, name)

    async def attack(self, name: str, host: str, **spec: Any) -> None:
        """The attacker's Route, made or edited with the attacker's own rights."""
        mine = dataclasses.replace(self.world, client=self.attacker, namespace=self.team)
        await mine.route(name, "thief", host=host, **spec)

    async def refused(self, name: str, reason: str) -> None:
        async def check() -> bool:
            found = await self.world.admitted(name, self.team)
            return (found["status"], found.get("reason")) == ("False", reason)

        await eventually(check)

    async def accepted(self, name: str) -> None:
        async def check() -> bool:
            return bool((await self.world.admitted(name, self.team))["status"] == "True")

        await eventually(check)

    async def again(self) -> None:
        """A new router that knows nothing but what the API server has."""
        await self.world.stop()
        await self.world.start()


@pytest.fixture
async def scene(client: Client, api_server: Path, namespace: str, tmp_path: Path) -> AsyncIterator[Scene]:
    for obj in status_policy.objects():
        await client.apply(obj)
    async with running_world(client, namespace, tmp_path) as world:
        attacker, team = await namespace_owner(client, api_server)
        async with attacker:
            await world.service("thief", await world.backend("thief"), ns=team)
            yield Scene(world, attacker, team)


async def test_an_older_route_is_edited_to_the_host(scene: Scene) -> None:
    await scene.attack("older", "harmless.example.com")
    await scene.world.reaches("harmless.example.com", "thief")
    await scene.victim()
    await scene.attack("older", HOST)
    await scene.refused("older", "HostAlreadyClaimed")
    assert await scene.world.greeting(HOST) == "api"


async def test_the_edit_is_made_while_no_router_runs(scene: Scene) -> None:
    await scene.attack("older", "harmless.example.com")
    await scene.accepted("older")
    await scene.victim()
    await scene.world.stop()
    await scene.attack("older", HOST)
    await scene.world.start()
    await scene.refused("older", "HostAlreadyClaimed")
    await scene.world.reaches(HOST, "api")


async def test_a_claim_is_held_over_restarts_and_given_on_when_it_ends(scene: Scene) -> None:
    await scene.attack("waiting", "other.example.com")
    await scene.victim()
    await scene.attack("waiting", HOST)
    await scene.refused("waiting", "HostAlreadyClaimed")
    await scene.again()
    await scene.world.reaches(HOST, "api")
    await scene.refused("waiting", "HostAlreadyClaimed")
    await scene.world.client.delete(r.ROUTES, "api", scene.world.namespace)
    await scene.accepted("waiting")


async def test_deleting_and_making_the_route_anew_wins_nothing(scene: Scene) -> None:
    await scene.victim()
    for _ in range(3):
        await scene.attack("again", HOST)
        await scene.refused("again", "HostAlreadyClaimed")
        await scene.attacker.delete(r.ROUTES, "again", scene.team)
    assert await scene.world.greeting(HOST) == "api"


async def test_a_status_that_says_it_was_first_cannot_be_written(scene: Scene) -> None:
    await scene.victim()
    await scene.attack("forged", HOST)
    await scene.refused("forged", "HostAlreadyClaimed")
    admitted = {"type": "Admitted", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    entry = {"host": HOST, "routerName": "default", "wildcardPolicy": "None", "conditions": [admitted]}
    body = {"status": {"ingress": [entry]}}

    async def refused() -> bool:
        # A policy takes a moment until the API server asks it.
        try:
            await scene.attacker.patch(r.ROUTES, "forged", scene.team, body, subresource="status")
        except (Forbidden, ApiError) as error:
            return "only its router writes it" in str(error)
        return False

    await eventually(refused)
    await scene.refused("forged", "HostAlreadyClaimed")
    await scene.again()
    await scene.world.reaches(HOST, "api")
    await scene.refused("forged", "HostAlreadyClaimed")


async def test_a_name_is_taken_out_of_a_foreign_wildcard(scene: Scene) -> None:
    await scene.victim("apps", "https.apps.victim.example.com", wildcardPolicy="Subdomain")
    await scene.world.reaches("console.apps.victim.example.com", "apps")
    await scene.attack("console", "console.apps.victim.example.com")
    await scene.refused("console", "HostUnderForeignWildcard")
    assert await scene.world.greeting("console.apps.victim.example.com") == "apps"
    await scene.again()
    await scene.refused("console", "HostUnderForeignWildcard")


async def test_every_name_of_the_apps_domain_is_taken(scene: Scene) -> None:
    await scene.attack("all", f"x.{DOMAIN}", wildcardPolicy="Subdomain")
    await scene.refused("all", "SharedDomain")
    await scene.victim("api", f"api-victim.{DOMAIN}")
    assert await scene.world.greeting(f"not-there-yet.{DOMAIN}") is None
