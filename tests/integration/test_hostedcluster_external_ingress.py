"""A hosted cluster whose machines are on another infra cluster gets its names below that cluster's domain by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support import guest_nodes
from tests.support import infra_ingress as support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.external_infra import VMS
from tests.support.hosted_api import hosted_api
from tests.support.hosted_operator import Running, mentions, rests
from tests.support.registry import Registry
from tests.support.router import DOMAIN

from hcp import payload
from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as k
from hcp.payload.release import definitions
from hcp.runtime.conditions import condition_of

NAME = "away"


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    folder = payload.ensure(["openshift-definitions"])["openshift-definitions"] / "manifests" / "crds"
    images = (*s.COMPONENTS, "router")
    return await s.push_release(registry, tmp_path, "1.36.3", images, CONFIG_DEFINITIONS=definitions(folder))


async def test_names_below_the_domain_there_come_with_the_first_node_and_go_with_the_cluster(
    admin: Client,
    operator: Callable[[], Running],
    own_server: ApiServer,
    image: str,
    registry: Registry,
    tmp_path: Path,
    bin_dir: Path,
) -> None:
    operator()
    async with support.place(own_server, admin) as place:
        await place.granted()
        meta = {"name": f"{NAME}-infra-credentials", "namespace": "clusters"}
        data = {"kubeconfig": place.kubeconfig}
        await admin.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})
        platform = support.hosted(NAME)["spec"]["platform"]
        platform["kubevirt"].pop("generateID")
        made = hosted_api(admin, NAME, image, registry, tmp_path, bin_dir, platform=platform)
        async with made as guest:
            # Routes are not even known there: nobody waits, and the reason is told.
            await eventually(
                lambda: mentions(admin, NAME, "AllFieldsHonoured", "serves no Routes"), "why there is no domain"
            )
            # The next look is minutes away; a new operator looks at once.
            await Running.latest.stop()
            async with support.routed(place, tmp_path / "router"):
                operator()
                await _is_led(admin, guest, place)
        assert await place.left(k.ROUTES, k.SERVICES, k.NETWORKPOLICIES) == [], "nothing is left there"


async def _is_led(admin: Client, guest: Client, place: support.Place) -> None:
    async def chosen() -> bool:
        live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
        return bool(at(live, "spec.dns.baseDomain") == DOMAIN)

    await eventually(chosen, "the base domain is the infra cluster's")
    assert await place.left() == [], "a control plane without nodes has nothing there"
    await guest_nodes.join(guest, "one")

    async def led() -> str | None:
        found = [one for one in await place.admin.list(k.ROUTES, VMS) if "passthrough" in one["metadata"]["name"]]
        return str(found[0]["spec"]["host"]) if found else None

    assert await eventually(led, "the Route in front of the machines") == f"https.apps.{NAME}.{DOMAIN}"
    router = await guest.get(k.SERVICES, "router-nodeport-default", "openshift-ingress")
    (wanted,) = [one["nodePort"] for one in router["spec"]["ports"] if one["name"] == "https"]
    (front,) = await place.admin.list(k.SERVICES, VMS)
    assert [one["targetPort"] for one in front["spec"]["ports"]] == [wanted]

    async def completed() -> bool:
        live = await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters")
        return bool(live["status"]["version"]["history"][0]["state"] == "Completed")

    await eventually(completed, "the version is reached", partial(guest_nodes.report_available, guest))

    async def well() -> bool:
        degraded = condition_of(await guest.get(k.CLUSTEROPERATORS, "ingress"), "Degraded")
        return degraded is not None and degraded["status"] == "False"

    await eventually(well, "and so does its operator inside say")
    await eventually(lambda: rests(admin, NAME), "a pass that writes nothing")
