"""A release with an autoscaler: it runs beside control planes whose pools follow the load, and only there."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import crds as crds_support
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, rests
from tests.support.hosted_pods import HostedPods
from tests.support.registry import Registry
from tests.support.running_cluster import NAME, NS, kubeconfig

from hcp.api import names
from hcp.api.paths import at
from hcp.guest import autoscaling as inside
from hcp.kube import Client, load_config, untrusted_kubeconfig
from hcp.kube import resources as k
from hcp.kube.errors import Forbidden

IMAGES = (*s.COMPONENTS, names.AUTOSCALER)


@pytest.fixture
async def image(registry: Registry, tmp_path: Path) -> str:
    return await s.push_release(registry, tmp_path, "1.36.3", IMAGES)


@pytest.fixture
async def admin(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(load_config(server.kubeconfig)) as client:
        await s.prepare(client)
        yield client


async def there(client: Client, resource: k.Resource, name: str, ns: str | None = None) -> Any:
    return await client.get_or_none(resource, name, ns)


def pool(name: str, **spec: Any) -> dict[str, Any]:
    made = crds_support.rendered_pool("clusters", name)
    made["spec"] |= {"clusterName": NAME, **spec}
    return made


async def test_the_autoscaler_comes_with_the_first_pool_that_wants_it_and_goes_with_the_last(
    admin: Client, pods: HostedPods, operator: Callable[[], Running]
) -> None:
    async with Client(untrusted_kubeconfig.load(await kubeconfig(admin))) as guest:
        await admin.create(pool("fixed", replicas=0))
        await eventually(lambda: rests(admin, NAME), "a look that writes nothing")
        for kind in (k.DEPLOYMENTS, k.SERVICEACCOUNTS, k.ROLEBINDINGS):
            assert await there(admin, kind, names.AUTOSCALER, NS) is None
        assert await there(guest, k.CLUSTERROLES, inside.NAME) is None

        wanted = pool("load", autoScaling={"min": 0, "max": 3})
        del wanted["spec"]["replicas"]
        await admin.create(wanted)
        live = await eventually(lambda: there(admin, k.DEPLOYMENTS, names.AUTOSCALER, NS), "the autoscaler")
        bound = await there(admin, k.ROLEBINDINGS, names.AUTOSCALER, NS)
        assert bound["roleRef"]["name"] == names.hosted_role(names.AUTOSCALER)
        assert "--expander=priority,least-waste" in words(live)
        await eventually(lambda: there(guest, k.CLUSTERROLES, inside.NAME), "its rights inside")
        await what_it_may_do_in_the_guest(admin)

        await admin.patch(k.HOSTEDCLUSTERS, NAME, "clusters", {"spec": {"autoscaling": {"maxNodesTotal": 7}}})

        async def told() -> bool:
            return "--max-nodes-total=7" in words(await admin.get(k.DEPLOYMENTS, names.AUTOSCALER, NS))

        await eventually(told, "a knob that is turned")
        await eventually(lambda: rests(admin, NAME), "a look that writes nothing")
        component = await admin.get(k.CONTROLPLANECOMPONENTS, names.AUTOSCALER, NS)
        assert at(component, "status.resources") == [{"group": "apps", "kind": "Deployment", "name": names.AUTOSCALER}]

        await admin.patch(k.NODEPOOLS, "load", "clusters", {"spec": {"autoScaling": None, "replicas": 0}})
        await eventually(lambda: gone(admin, k.DEPLOYMENTS, names.AUTOSCALER, NS), "nobody follows the load")
        await eventually(lambda: gone(admin, k.SECRETS, "cluster-autoscaler-kubeconfig", NS), "nor can anybody be it")
        await eventually(lambda: gone(guest, k.CLUSTERROLES, inside.NAME), "its rights inside go too")
        await eventually(lambda: rests(admin, NAME), "a look that writes nothing")


async def gone(client: Client, resource: k.Resource, name: str, ns: str | None = None) -> bool:
    return await there(client, resource, name, ns) is None


def words(deployment: dict[str, Any]) -> list[str]:
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
    return found


async def what_it_may_do_in_the_guest(admin: Client) -> None:
    secret = await admin.get(k.SECRETS, "cluster-autoscaler-kubeconfig", NS)
    text = base64.b64decode(secret["data"]["kubeconfig"]).decode()
    address = at(await admin.get(k.HOSTEDCLUSTERS, NAME, "clusters"), "status.controlPlaneEndpoint")
    inner = untrusted_kubeconfig.load(text.replace("https://kube-apiserver:", f"https://{address['host']}:").encode())
    async with Client(inner) as autoscaler:
        await eventually(lambda: sees(autoscaler), "what a scheduler sees")
        assert await autoscaler.list(k.CONFIGMAPS, "kube-system"), "priorities of pools would be there"
        for resource, ns in ((k.SECRETS, None), (k.SECRETS, "kube-system"), (k.CONFIGMAPS, None)):
            with pytest.raises(Forbidden):
                await autoscaler.list(resource, ns)


async def sees(autoscaler: Client) -> bool:
    return await autoscaler.list(k.NODES) == [] and isinstance(await autoscaler.list(k.PODS), list)
