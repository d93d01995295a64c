"""Hosted clusters whose machines share a namespace of another infra cluster: one writes what makes it have the names of
its neighbour, whose Service, Route and DNS records have to stay as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import infra_ingress as support
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import VMS
from tests.support.guides import documents
from tests.support.infra_ingress import Place
from tests.support.router import DOMAIN

from hcp.api.names import LABEL_INFRA_ID
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.kubevirt.infra_domain import NoDomain, usable

EXTERNAL_DNS = "external-dns.alpha.kubernetes.io/hostname"


@pytest.fixture
async def place(own_server: ApiServer, client: Client) -> AsyncIterator[Place]:
    async with support.place(own_server, client) as made:
        await made.granted()
        yield made


async def settled(place: Place, cluster: dict[str, Any], prefix: str = "") -> None:
    async def led() -> bool:
        return (await place.ask(cluster, support.way_wish(cluster, DOMAIN, prefix))).problem == ""

    await eventually(led, "the victim's way is made and admitted")


async def everything(place: Place) -> dict[str, Any]:
    kinds = (r.ROUTES, r.SERVICES)
    return {one["metadata"]["name"]: one for kind in kinds for one in await place.admin.list(kind, VMS)}


async def test_by_its_generated_id(place: Place, tmp_path: Path) -> None:
    """It makes the names of the objects, and may be written by whoever writes a HostedCluster."""
    victim = support.hosted("victim")
    thief = support.hosted("thief", kubevirt={"generateID": victim["spec"]["platform"]["kubevirt"]["generateID"]})
    async with support.routed(place, tmp_path):
        await settled(place, victim)
        before = await everything(place)
        found = await place.ask(thief, support.way_wish(thief, DOMAIN))
        assert (found.reason, "somebody else's" in found.problem) == ("NameTaken", True)
        assert await everything(place) == before


async def test_by_its_prefix(place: Place, tmp_path: Path) -> None:
    """It makes the host: two ask for one wildcard, and who was first keeps it."""
    victim, thief = support.hosted("victim"), support.hosted("thief", dns={"baseDomainPrefix": "victim"})
    async with support.routed(place, tmp_path):
        await settled(place, victim)

        async def refused() -> bool:
            found = await place.ask(thief, support.way_wish(thief, DOMAIN, "victim"))
            return "is taken by another Route" in found.problem

        await eventually(refused, "the thief is told")
        assert (await place.ask(victim, support.way_wish(victim, DOMAIN))).problem == ""


async def test_by_the_name_of_its_load_balancer(place: Place, tmp_path: Path) -> None:
    """It makes the name of the owner's Service, which is told to external-dns."""
    apps = documents.apps_service("shop", VMS, support.PORT, 31080)
    apps["spec"]["selector"][LABEL_INFRA_ID] = "victim-abcde"
    older = documents.apps_service("till", VMS, support.PORT, 31080)
    older["metadata"]["annotations"] = {EXTERNAL_DNS: "*.apps.till.bank.test"}
    plain = documents.apps_service("desk", VMS, support.PORT, 31080)
    async with support.routed(place, tmp_path):
        for service in (apps, older, plain):
            await place.admin.create(service)
        before = await everything(place)
        for name in ("shop", "till", "desk"):
            thief = support.hosted(name, namespace="thieves", dns={"baseDomain": "evil.test"})
            await place.ask(thief, support.way_wish(thief, "evil.test", through=False))
        assert await everything(place) == before


@pytest.mark.parametrize(
    "said", ["", "test", "*", "apps.evil.test\nserver x", "Apps.Evil.Test", "a" * 300, "apps..test", "-a.test", "a.b/c"]
)
def test_by_an_infra_cluster_that_names_no_domain(said: str) -> None:
    """It would become part of certificates, of configuration of HAProxy and of the HostedCluster."""
    with pytest.raises(NoDomain):
        usable(said)
