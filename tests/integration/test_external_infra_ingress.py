"""Names below the domain of another infra cluster, with the guide's Role there: two API servers and a real router."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support import infra_ingress as support
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import VMS
from tests.support.guides import documents
from tests.support.infra_ingress import Place
from tests.support.router import DOMAIN, own_address

from hcp.api.names import LABEL_INFRA_ID
from hcp.api.paths import at
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube import resources as r
from hcp.kubevirt import leftovers
from hcp.preflight import infra as preflight

ROUTE, SERVICE = "default-ingress-passthrough-route-demo012345", "default-ingress-passthrough-service-demo012345"


@pytest.fixture
async def place(own_server: ApiServer, client: Client) -> AsyncIterator[Place]:
    async with support.place(own_server, client) as made:
        yield made


async def test_tls_goes_through_to_the_machines_and_nothing_is_left(place: Place, tmp_path: Path) -> None:
    await place.granted()
    cluster = support.hosted()
    async with support.routed(place, tmp_path) as world:
        # The guide's Role lets nobody read the domain: a Route that names no host shows it, and goes again.
        found = await place.ask(cluster, support.domain_wish(cluster))
        assert (found.domain, found.problem) == (DOMAIN, "")
        assert await place.left() == []

        wish = support.way_wish(cluster, DOMAIN)

        async def admitted() -> bool:
            return (await place.ask(cluster, wish)).problem == ""

        await eventually(admitted, "the router there admits the wildcard")
        assert await place.left() == [ROUTE, SERVICE]
        service = await place.admin.get(r.SERVICES, SERVICE, VMS)
        assert service["spec"]["selector"] == {LABEL_INFRA_ID: "demo-abcde", "kubevirt.io": "virt-launcher"}
        assert [port["targetPort"] for port in service["spec"]["ports"]] == [support.PORT]

        # No kubelet runs a machine here: a server of the test's is where its pod would be.
        behind = await world.backend("machine")
        await place.admin.create(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "m", "namespace": VMS, "labels": {"kubernetes.io/service-name": SERVICE}},
                "addressType": "IPv4",
                "ports": [{"name": "https-443", "port": behind.port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
            }
        )
        await world.reaches(f"anything.apps.demo.{DOMAIN}", "machine")

        async def versions() -> list[str]:
            kinds = ((r.ROUTES, ROUTE), (r.SERVICES, SERVICE))
            return [(await place.admin.get(kind, name, VMS))["metadata"]["resourceVersion"] for kind, name in kinds]

        before = await versions()
        assert (await place.ask(cluster, wish)).problem == ""
        assert await versions() == before, "a look that finds all as it should be writes nothing"

        # What somebody took away there comes back with the next look.
        await place.admin.delete(r.ROUTES, ROUTE, VMS)
        await eventually(admitted, "the Route is back")

        gone = await leftovers.clear(place.management, "clusters-demo", cluster["spec"]["platform"], "demo-abcde")
        assert f"Route {ROUTE}" in gone.waiting
        again = await leftovers.clear(place.management, "clusters-demo", cluster["spec"]["platform"], "demo-abcde")
        assert again == leftovers.Left()
        assert await place.left() == []


async def test_missing_rights_are_named_and_what_needs_none_of_them_works(place: Place, tmp_path: Path) -> None:
    await place.granted([one for one in documents.NEWER_RIGHTS if one[0] != "route.openshift.io"])
    cluster = support.hosted()
    async with support.routed(place, tmp_path):
        for wish in (support.domain_wish(cluster), support.way_wish(cluster, DOMAIN)):
            found = await place.ask(cluster, wish)
            assert found.reason == "InfraRightsMissing"
            for words in ("list routes.route.openshift.io", "create routes/custom-host.route.openshift.io"):
                assert words in found.todo
        async with Client(untrusted_kubeconfig.load(place.kubeconfig)) as account:
            said = await preflight.ingress(account, VMS)
        assert said.state == "warning" and "create routes/custom-host.route.openshift.io" in said.message
        # Deleting needs no right that was never used.
        cleared = await leftovers.clear(place.management, "clusters-demo", cluster["spec"]["platform"], "demo-abcde")
        assert cleared == leftovers.Left()


async def test_an_infra_cluster_without_routes_is_told_of(place: Place) -> None:
    await place.granted()
    cluster = support.hosted()
    found = await place.ask(cluster, support.domain_wish(cluster))
    assert (found.domain, found.problem) == ("", "the infra cluster serves no Routes")
    async with Client(untrusted_kubeconfig.load(place.kubeconfig)) as account:
        said = await preflight.ingress(account, VMS)
    assert said.state == "warning" and "no Routes" in said.message


async def test_below_a_domain_of_ones_own_the_service_is_looked_for_there(place: Place, tmp_path: Path) -> None:
    await place.granted()
    cluster = support.hosted(dns={"baseDomain": "bank.test"})
    async with support.routed(place, tmp_path):
        wish = support.way_wish(cluster, "bank.test")
        found = await place.ask(cluster, wish)
        assert (found.domain, found.problem, found.service) == (DOMAIN, "", None)
        assert await place.left() == [], "names of another domain are not taken there"
        apps = documents.apps_service("demo", VMS, support.PORT, 31080)
        apps["spec"]["selector"][LABEL_INFRA_ID] = "demo-abcde"
        await place.admin.create(apps)
        found = await place.ask(cluster, wish)
        assert at(found.service, "spec.type") == "LoadBalancer"
        told = (await place.admin.get(r.SERVICES, "demo-apps", VMS))["metadata"]["annotations"]
        assert told["external-dns.alpha.kubernetes.io/hostname"] == "*.apps.demo.bank.test"
