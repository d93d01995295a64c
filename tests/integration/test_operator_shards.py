"""Operators in shards on a real API server: each makes the clusters of its own, and one that stays has all."""

from __future__ import annotations

from collections.abc import Callable

from tests.support import management as s
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.hosted_operator import Running, gone, hands
from tests.support.registry import Registry

from hcp.kube import Client
from hcp.kube import resources as k
from hcp.operator.leases import member_name
from hcp.runtime.shards import holder_of, lease_name, shard_of

# One of each shard.
NAMES = [next(n for n in "abcdefghijkl" if shard_of(f"clusters-{n}", 2) == number) for number in (0, 1)]


async def test_the_clusters_of_one_that_leaves_are_gone_on_with_by_the_other(
    admin: Client, operator: Callable[..., Running], image: str, registry: Registry
) -> None:
    async def holders() -> list[str]:
        found = {one["metadata"]["name"]: holder_of(one) for one in await admin.list(k.LEASES, "hypershift")}
        return [found.get(lease_name(number), "") for number in (0, 1)]

    async def held(*who: str) -> bool:
        return sorted(await holders()) == sorted(who)

    first = operator(identity="first", shards=2)
    await eventually(lambda: held("first", "first"), "one alone has both")
    second = operator(identity="second", shards=2)
    await eventually(lambda: held("first", "second"), "two have one each")
    for name in NAMES:
        networking = {"networkType": "Other", "serviceNetwork": [{"cidr": "172.31.0.0/16"}]}
        networking["apiServer"] = {"port": free_port()}  # type: ignore[assignment]
        await s.create(admin, name, image, registry, networking=networking)

    async def made(name: str) -> bool:
        await s.give_address(admin, f"clusters-{name}", "127.0.0.1")
        return await admin.get_or_none(k.DEPLOYMENTS, "kube-apiserver", f"clusters-{name}") is not None

    for name in NAMES:
        await eventually(lambda name=name: made(name), "the API server is deployed")  # type: ignore[misc]
    ids = [(await admin.get(k.NAMESPACES, f"clusters-{n}"))["metadata"]["annotations"] for n in NAMES]
    assert ids[0] != ids[1]
    await (second if (await holders())[0] == "first" else first).stop()
    left = (await holders())[0] or (await holders())[1]
    await eventually(lambda: held(left, left), "the other has both")
    assert (
        await admin.get_or_none(k.LEASES, member_name("second" if left == "first" else "first"), "hypershift") is None
    )

    # An edit of each is applied by the one that is left.
    body = {"spec": {"configuration": {"apiServer": {"audit": {"profile": "AllRequestBodies"}}}}}

    async def rolled(name: str) -> bool:
        live = await admin.get(k.DEPLOYMENTS, "kube-apiserver", f"clusters-{name}")
        return bool(live["metadata"]["generation"] > 1)

    for name in NAMES:
        await admin.patch(k.HOSTEDCLUSTERS, name, "clusters", body)
    for name in NAMES:
        await eventually(lambda name=name: rolled(name), "the edit is applied")  # type: ignore[misc]
    for name in NAMES:
        await admin.delete(k.HOSTEDCLUSTERS, name, "clusters")
    for name in NAMES:
        await eventually(lambda name=name: gone(admin, name), "it is gone", hands(admin, f"clusters-{name}"))  # type: ignore[misc]
