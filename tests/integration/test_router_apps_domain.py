"""Another domain for new Routes, as the cluster's ingress configuration names it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import crds as support
from tests.support.definitions import open_crd
from tests.support.eventually import eventually
from tests.support.router import DOMAIN, World, running_world

from hcp.kube import Client
from hcp.kube import resources as r

OTHER = "apps.bank.test"


async def names(client: Client, **spec: str) -> None:
    await client.apply(
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "cluster"},
            "spec": {"domain": "not.asked.test", **spec},
        }
    )


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    await support.install(client, [open_crd(r.INGRESS_CONFIGS)])
    await names(client, appsDomain=OTHER)
    async with running_world(client, namespace, tmp_path) as made:
        yield made
    await client.delete(r.INGRESS_CONFIGS, "cluster", missing_ok=True)


async def host(world: World, name: str) -> str:
    async def given() -> str:
        return str((await world.client.get(r.ROUTES, name, world.namespace))["spec"].get("host") or "")

    return await eventually(given, f"a host for {name}")


async def test_new_routes_are_below_it_and_those_before_stay_where_they_are(world: World) -> None:
    one, ns = await world.backend("one"), world.namespace
    await world.service("api", one)
    await world.route("first", "api")
    assert await host(world, "first") == f"first-{ns}.{OTHER}"
    await world.reaches(f"first-{ns}.{OTHER}", "one")

    await names(world.client)

    async def back() -> bool:
        """Routes are made until one is below the router's own domain again."""
        await world.client.delete(r.ROUTES, "second", ns, missing_ok=True)
        await world.route("second", "api")
        return await host(world, "second") == f"second-{ns}.{DOMAIN}"

    await eventually(back, "without it, the router's own domain")
    await world.reaches(f"second-{ns}.{DOMAIN}", "one")
    assert await host(world, "first") == f"first-{ns}.{OTHER}"
    await world.reaches(f"first-{ns}.{OTHER}", "one")


async def test_nobody_takes_all_names_of_either_domain(world: World) -> None:
    for name, domain in (("other", OTHER), ("own", DOMAIN)):
        await world.route(name, "api", host=f"any.{domain}", wildcardPolicy="Subdomain")
        told = await world.admitted(name)
        assert (told["status"], told["reason"]) == ("False", "SharedDomain")
