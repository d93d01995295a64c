"""A real HAProxy has what it was told, whatever way a change took: row by row, as a whole table, or after a start."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.eventually import eventually
from tests.support.router import haproxy_binary

from hcp.errors import HcpError
from hcp.router import maps
from hcp.router.config import Settings, map_name
from hcp.router.haproxy import HAProxy
from hcp.router.tables import Tables

# Every character that a path of a Route may have, and those that mean something in HAProxy's commands.
ODD = "a.test/-A._~!$&'()*+,;=:@%/\\\"<<"


class Told(HAProxy):
    """Writes down what it is told."""

    def __init__(self, settings: Settings, binary: str) -> None:
        super().__init__(settings, binary)
        self.commands: list[str] = []

    async def command(self, text: str) -> str:
        self.commands.append(text)
        return await super().command(text)


@pytest.fixture
async def haproxy(tmp_path: Path) -> AsyncIterator[Told]:
    settings = Settings(tmp_path / "r \u00f6", free_port(), free_port(), address="127.0.0.1", max_connections=100)
    made = Told(settings, haproxy_binary())
    await made.start()
    yield made
    await made.close()


async def held(haproxy: HAProxy) -> dict[str, dict[str, str]]:
    """What HAProxy itself says that it has; a key that is there twice would be a mistake."""
    found: dict[str, dict[str, str]] = {}
    for name in haproxy.settings.tables:
        said = await haproxy.command(f"show map {map_name(name)}")
        rows = [line.split(" ", 2)[1:] for line in said.splitlines()]
        assert len({key for key, _ in rows}) == len(rows)
        found[name] = dict(rows)
    return found


def wanted(tables: Tables, haproxy: HAProxy) -> dict[str, dict[str, str]]:
    return {name: tables.rows[name] for name in haproxy.settings.tables}


async def push(haproxy: HAProxy, tables: Tables) -> None:
    pushed = await haproxy.push(tables)
    assert not pushed.refused
    assert not tables.touched


async def test_many_changes_one_after_the_other(haproxy: Told) -> None:
    chance, tables = random.Random(7), Tables()
    for _ in range(60):
        for _ in range(chance.choice([1, 1, 1, 3, 200])):
            number = chance.randrange(150)
            rows = maps.Rows()
            if chance.random() < 0.7:
                pods = [f"10.0.0.{n}@{chance.randrange(1, 9)}" for n in range(chance.randrange(1, 4))]
                rows.add_web(maps.HTTP, maps.Place(f"h{number}.test", chance.choice(["", "/a;b", "/c"])), pods)
                rows.add_tls(f"t{number}.test", pods)
            tables.put(f"n/{number}", rows)
        await push(haproxy, tables)
        assert await held(haproxy) == wanted(tables, haproxy)


async def test_every_character_comes_through_as_itself(haproxy: Told) -> None:
    tables = Tables()
    tables.put("n/other", {(maps.HTTP, "other.test/"): "redirect"})
    for value in (ODD, "second", f"{ODD};show|info;", "redirect"):
        tables.put("n/odd", {(maps.HTTP, ODD): value, (maps.HTTP, "z.test/;"): value})
        await push(haproxy, tables)
        assert await held(haproxy) == wanted(tables, haproxy)
    tables.put("n/odd", {})
    await push(haproxy, tables)
    assert await held(haproxy) == wanted(tables, haproxy)


async def test_one_route_among_a_thousand_is_told_alone(haproxy: Told) -> None:
    tables = Tables()

    def put(number: int, pod: str) -> None:
        rows = maps.Rows()
        rows.add_web(maps.HTTP, maps.Place(f"h{number}.test", ""), [pod])
        tables.put(f"n/{number}", rows)

    for number in range(1000):
        put(number, "10.0.0.1@80")
    await push(haproxy, tables)
    haproxy.commands.clear()
    put(7, "10.0.0.2@80")
    await push(haproxy, tables)
    assert len(haproxy.commands) == 1
    assert "10.0.0.2" in haproxy.commands[0]
    haproxy.commands.clear()
    tables.put("n/7", {})
    await push(haproxy, tables)
    assert all(one.startswith("del map ") for one in haproxy.commands)
    assert len(haproxy.commands) == 2
    assert await held(haproxy) == wanted(tables, haproxy)


async def test_places_come_after_their_pods_and_go_before_them(haproxy: Told) -> None:
    rows, tables = maps.Rows(), Tables()
    rows.add_web(maps.HTTP, maps.Place("h.test", ""), ["10.0.0.1@80"])

    def order() -> list[str]:
        return [name for one in haproxy.commands for name in (maps.HTTP, maps.ADDRESS) if f" {map_name(name)} " in one]

    haproxy.commands.clear()
    tables.put("n/1", rows)
    await push(haproxy, tables)
    assert order() == [maps.ADDRESS, maps.HTTP]
    haproxy.commands.clear()
    tables.put("n/1", {})
    await push(haproxy, tables)
    assert order() == [maps.HTTP, maps.ADDRESS]


async def test_a_change_that_was_not_taken_leaves_nothing_half_done(haproxy: Told) -> None:
    tables = Tables()
    tables.put("n/1", {(maps.TLS_COUNT, "a.test"): "1"})
    await push(haproxy, tables)
    tables.put("n/2", {(maps.TLS_COUNT, "b.test"): "none"})
    pushed = await haproxy.push(tables)
    assert list(pushed.refused) == [(maps.TLS_COUNT, "b.test")]
    tables.put("n/2", {(maps.TLS_COUNT, "b.test"): "2"})
    await push(haproxy, tables)
    assert await held(haproxy) == wanted(tables, haproxy)
    # The same for a row that was good before.
    tables.put("n/1", {(maps.TLS_COUNT, "a.test"): "none"})
    assert list((await haproxy.push(tables)).refused) == [(maps.TLS_COUNT, "a.test")]
    tables.put("n/1", {})
    await push(haproxy, tables)
    assert await held(haproxy) == wanted(tables, haproxy)


async def test_a_process_that_starts_again_has_what_was_told_row_by_row(haproxy: Told) -> None:
    tables = Tables()
    for number in range(5):
        tables.put(f"n/{number}", {(maps.TLS_COUNT, f"h{number}.test"): str(number + 1)})
        await push(haproxy, tables)
    starts = haproxy.starts
    assert haproxy._process is not None
    haproxy._process.kill()

    async def again() -> bool:
        try:
            return haproxy.starts > starts and await held(haproxy) == wanted(tables, haproxy)
        except (HcpError, OSError):
            return False

    await eventually(again)
