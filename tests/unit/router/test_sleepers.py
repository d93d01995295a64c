"""Rows, rules and the waiting line of hosts whose clusters sleep."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hcp.router import admission, maps, reports, sleepers, waiting
from hcp.router.config import Settings, render
from hcp.router.manifests import objects
from hcp.router.options import Options

THROUGH = {"spec": {"tls": {"termination": "passthrough"}}}


def test_only_a_route_without_pods_that_passes_tls_on_waits() -> None:
    one = admission.Decision("n/api", "api.test", True)
    assert maps.rows_of(one, THROUGH, [], asleep=True) == {(maps.TLS_ASLEEP, "api.test"): "1"}
    assert maps.TLS_ASLEEP not in {table for table, _ in maps.rows_of(one, THROUGH, ["1.1.1.1@1"], asleep=True)}
    assert not maps.rows_of(one, {"spec": {"path": "/"}}, [], asleep=True)
    assert not maps.rows_of(admission.Decision("n/all", "x.api.test", True, wildcard=True), THROUGH, [], asleep=True)
    refused = admission.Decision("n/bad", "api.test", False, "HostAlreadyClaimed")
    assert not maps.rows_of(refused, THROUGH, [], asleep=True)


def test_who_may_come_is_known_while_it_sleeps() -> None:
    guarded = admission.Decision(
        "n/api", "api.test", True, options=Options(networks=(ipaddress.ip_network("10.0.0.0/8"),))
    )
    tables = {table for table, _ in maps.rows_of(guarded, THROUGH, [], asleep=True)}
    assert tables == {maps.TLS_ASLEEP, maps.TLS_OPTIONS, maps.ALLOWED}


def test_a_router_that_wakes_nobody_has_nothing_of_it(tmp_path: Path) -> None:
    plain, wakes = Settings(tmp_path), Settings(tmp_path, wakes=True)
    assert not {"lua", "asleep", "held"} & set(render(plain).replace(".", " ").replace("-", " ").split())
    assert maps.TLS_ASLEEP not in plain.tables
    assert set(wakes.tables) - set(plain.tables) == {maps.TLS_ASLEEP}
    # Nobody who is awake comes by the script: it is in a front of its own.
    usual, _, rest = render(wakes).partition("frontend held")
    assert "lua." not in usual
    assert f"lua.{waiting.ACTION}" in rest
    words = next(one for one in objects("image") if one["kind"] == "Deployment")
    assert "--wake-sleeping" in words["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_connection_is_let_go_before_haproxy_gives_up() -> None:
    script = waiting.script('a "place".sock')
    assert 'connect("unix@a \\"place\\".sock")' in script
    assert waiting.HOLD < 125 < waiting.GIVE_UP
    assert "settimeout(125)" in script


async def told(path: Path, host: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(host + b"\n")
    return reader, writer


@pytest.mark.parametrize("host", [b"", b"other.test", b"\xff\xfe", b"x" * 5000])
async def test_a_host_that_does_not_sleep_is_answered_at_once(tmp_path: Path, host: bytes) -> None:
    asked: list[tuple[str, str]] = []
    line = sleepers.Sleepers(lambda key, since: asked.append((key, since)))
    line.put("n/api", "api.test", "then")
    await line.start(tmp_path / "s")
    reader, writer = await told(tmp_path / "s", host)
    assert (await reader.read()).strip() == b""
    writer.close()
    await line.stop()
    assert (asked, line.held) == ([], 0)


async def test_who_waits_goes_on_only_when_haproxy_knows(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    line = sleepers.Sleepers(lambda key, since: asked.append((key, since)))
    line.put("n/api", "api.test", "then")
    await line.start(tmp_path / "s")
    reader, writer = await told(tmp_path / "s", b"api.test")
    answer = asyncio.create_task(reader.read())
    while not line.held:
        await asyncio.sleep(0.01)
    line.settle()
    line.put("n/api", "", "")
    await asyncio.sleep(0.05)
    assert not answer.done(), "the rows are not handed over yet"
    late_reader, late = await told(tmp_path / "s", b"api.test")
    while line.held < 2:
        await asyncio.sleep(0.01)
    line.settle()
    assert await answer == await late_reader.read() == b"\n"
    late.close()
    assert asked == [("n/api", "then")]
    writer.close()
    await line.stop()


def test_a_host_that_goes_from_one_route_to_another_is_that_of_the_last() -> None:
    line = sleepers.Sleepers(lambda _key, _since: None)
    line.put("n/old", "api.test", "then")
    line.put("n/new", "api.test", "now")
    line.put("n/old", "", "")
    assert line._asleep["api.test"].key == "n/new"
    line.put("n/new", "", "")
    assert not line._asleep


def test_who_connects_again_shortens_no_pause_after_a_write_that_failed() -> None:
    """It is under way; the pause after a failure sets it off again, not a stranger."""
    live: dict[str, Any] = {"metadata": {"name": "api", "namespace": "n"}}
    sources: Any = SimpleNamespace(routes=SimpleNamespace(get_key=lambda _key: live))
    line = reports.Reports(cast(Any, None), sources, cast(Any, None))
    line.ask("n/api", "then")
    assert line._any.is_set()
    line._any.clear()
    line.ask("n/api", "then")
    assert not line._any.is_set()
    line.ask("n/api", "the next sleep")
    assert line._any.is_set()
