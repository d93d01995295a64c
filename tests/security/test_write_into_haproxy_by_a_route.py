"""Routes whose words would be commands, rows or whole files for HAProxy, or that it chokes on."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ApiServer
from tests.support.eventually import eventually
from tests.support.router import World, running_world
from tests.support.security.good_route import GOOD, loose, serve_good
from tests.support.security.route_user import namespace_owner

from hcp.kube import Client, load_config
from hcp.kube import resources as r
from hcp.kube.errors import Invalid
from hcp.router import maps
from hcp.router.config import map_name
from hcp.router.crd import route_crd
from hcp.router.haproxy import HAProxy, Pushed
from hcp.router.tables import Tables
from hcp.runtime.events import BURST

# Two line ends end a table in HAProxy's control language: what follows would be a command.
COMMANDS = "\n\nshutdown frontend tls-0\ndel map #0\n"
WRITTEN = [
    {"subdomain": f"x{COMMANDS}"},
    {"subdomain": "bücher"},
    {"subdomain": "a b"},
    {"subdomain": "x" * 64},
    {"host": f"a.example.com{COMMANDS}"},
    {"host": "a.example.com\n"},
    {"host": "good.example.com 9\nevil.example.com"},
    {"host": "*.example.com"},
    {"host": "a..example.com"},
    {"host": "#a.example.com"},
    {"path": f"/{COMMANDS}"},
    {"path": "/a b"},
    {"path": "/" + "ä" * 1000},
    {"path": "/" + "x" * 5000},
    {"path": "//\\\n"},
    {"path": "no-slash"},
]


# What annotations hold is checked by no definition.
ANNOTATED = {
    "timeout": f"5s{COMMANDS}",
    "timeout-tunnel": "1h if TRUE",
    "balance": f"source{COMMANDS}",
    "rate-limit-connections": f"true{COMMANDS}",
    "rate-limit-connections.rate-http": "5 or TRUE",
    "ip_allowlist": f"10.0.0.1{COMMANDS}",
    "ip_whitelist": "0.0.0.0/0|evil",
    "hsts_header": "max-age=1\r\nSet-Cookie: evil=1",
    "rewrite-target": "/%[env(HOME)]|evil",
    "set-forwarded-headers": f"never{COMMANDS}",
}


def body(name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "route.openshift.io/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"to": {"kind": "Service", "name": "mine"}, **spec},
    }


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(client, namespace, tmp_path) as made:
        yield made


@pytest.fixture
async def lax_world(own_server: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    """A router on a cluster whose Route kind is somebody else's and lets everything through."""
    async with Client(load_config(own_server.kubeconfig)) as client:
        made = await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "good-"}})
        async with running_world(client, made["metadata"]["name"], tmp_path, loose(route_crd())) as found:
            yield found


@pytest.mark.parametrize("spec", WRITTEN, ids=lambda spec: f"{next(iter(spec))}-{len(next(iter(spec.values())))}")
async def test_the_api_server_refuses_what_is_no_name(client: Client, world: World, spec: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        await client.create(body("bad", world.namespace, spec), dry_run=True)
    assert f"spec.{next(iter(spec))}" in str(refused.value)


async def test_a_cluster_that_lets_everything_through_serves_no_word_of_it(
    lax_world: World, own_server: ApiServer
) -> None:
    world = lax_world
    await serve_good(world)
    pid = world.process.pid
    attacker, team = await namespace_owner(world.client, own_server.kubeconfig)
    async with attacker:
        mine = dataclasses.replace(world, client=attacker, namespace=team)
        await world.service("mine", await world.backend("mine", tls=False), ns=team)
        for number, spec in enumerate(WRITTEN):
            await attacker.create(body(f"bad-{number}", team, spec))
        await attacker.create(
            body(
                "weights",
                team,
                {"host": "w.example.com", "alternateBackends": [{"kind": "Service", "name": "x", "weight": 2**31 - 1}]},
            )
        )
        await attacker.create(
            body(
                "tls",
                team,
                {"host": "t.example.com", "tls": {"termination": f"edge{COMMANDS}", "certificate": COMMANDS}},
            )
        )
        for number in range(len(WRITTEN)):
            found = await mine.admitted(f"bad-{number}")
            assert found["status"] == "False", WRITTEN[number]
            assert found["reason"] in ("InvalidHost", "InvalidPath")
        assert (await mine.admitted("tls"))["reason"] == "UnsupportedTermination"
    await serve_good(world, "later", "later.example.com")
    assert world.process.pid == pid
    assert await world.greeting(GOOD) == "good"
    written = await _written(world)
    assert "shutdown" not in written
    assert "evil" not in written
    assert written.isascii()


async def test_words_of_annotations_are_no_rules(world: World) -> None:
    await serve_good(world)
    pid = world.process.pid
    await world.service("mine", await world.backend("mine", tls=False))
    for number, (name, value) in enumerate(ANNOTATED.items()):
        made = body(f"bad-{number}", world.namespace, {"host": f"h{number}.example.com"})
        made["metadata"]["annotations"] = {f"haproxy.router.openshift.io/{name}": value}
        await world.client.create(made)
    for number in range(len(ANNOTATED)):
        assert (await world.admitted(f"bad-{number}"))["reason"] == "InvalidAnnotation"
        assert (await world.http(f"h{number}.example.com"))[0] == 503
    await serve_good(world, "later", "later.example.com")
    assert world.process.pid == pid
    written = await _written(world)
    assert "shutdown" not in written
    assert "evil" not in written
    assert "TRUE" not in written


async def test_hundreds_of_bad_routes_write_no_hundreds_of_events(world: World) -> None:
    tls = {"termination": "edge"}
    for number in range(BURST * 3):
        await world.client.create(
            body(f"bad-{number}", world.namespace, {"host": f"h{number}.example.com", "tls": tls})
        )
    for number in range(BURST * 3):
        assert (await world.admitted(f"bad-{number}"))["status"] == "False"
    await serve_good(world)

    async def told() -> list[dict[str, Any]]:
        events = await world.client.list(r.EVENTS, world.namespace)
        return [one for one in events if one["involvedObject"]["kind"] == "Route"]

    await eventually(told, "some events")
    await world.router._reports._events.flush()
    assert len(await told()) < BURST * 2


async def test_path_characters_that_urls_have_are_served_as_they_are(world: World) -> None:
    await world.service("web", await world.backend("web", tls=False))
    path = "/a;b@c'(d)$&,=~!*+:%20"
    await world.route("web", "web", tls="", host="web.example.com", path=path)

    async def answers() -> bool:
        return (await world.http("web.example.com", path))[0] == 200

    await eventually(answers)
    assert (await world.http("web.example.com", "/a;b"))[0] == 503


class Choking(HAProxy):
    """A real HAProxy that is given rows which it cannot take for some hosts, as a flaw of ours would do it."""

    pushes = 0

    async def push(self, tables: Tables) -> Pushed:
        self.pushes += 1
        count = tables.rows[maps.TLS_COUNT]
        for name in [one for one in count if one.startswith("choke")]:
            count[name] = "not-a-number"
        return await super().push(tables)


async def test_a_route_that_haproxy_refuses_is_alone_in_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await serve_good(world)
    await world.stop()
    world.process = choking = Choking(world.process.settings, world.process._binary)
    await world.service("bad", await world.backend("bad"))
    await world.route("choke-1", "bad", host="choke-1.example.com")
    await world.start()
    await world.route("choke-2", "bad", host="choke-2.example.com")
    for name in ("choke-1", "choke-2"):

        async def named(name: str = name) -> bool:
            found = await world.admitted(name)
            return found["status"] == "False" and found["reason"] == "NotServable" and "HAProxy" in found["message"]

        await eventually(named)
    await world.reaches(GOOD, "good")
    await serve_good(world, "later", "later.example.com")
    # Nothing more is tried once all is said: a circle would never come to rest.
    seen: list[tuple[int, list[str]]] = []

    async def rests() -> bool:
        seen.append((choking.pushes, await _versions(world)))
        await asyncio.sleep(1)
        return len(seen) > 3 and seen[-1] == seen[-2] == seen[-3]

    await eventually(rests)
    # An edit brings it back, and HAProxy starts again with what it took.
    await world.route("choke-1", "bad", host="fine.example.com")
    await world.reaches("fine.example.com", "bad")
    assert choking._process is not None
    choking._process.kill()
    await world.reaches(GOOD, "good")


async def _written(world: World) -> str:
    """All that HAProxy has in its tables, in its own words."""
    settings = world.process.settings
    found = [await world.process.command(f"show map {map_name(name)}") for name in settings.tables]
    assert "later.example.com" in "".join(found)
    return "".join(found)


async def _versions(world: World) -> list[str]:
    return sorted(one["metadata"]["resourceVersion"] for one in await world.client.list(r.ROUTES))
