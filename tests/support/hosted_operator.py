"""The operator inside a test, and what a test asks of hosted clusters."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.passes import a_pass

from hcp.kube import Client, ClusterConfig, load_config
from hcp.kube import resources as k
from hcp.operator import process
from hcp.operator.support import Support

WRITES = frozenset({"create", "update", "patch", "delete"})


class Running:
    """The operator inside the test, with a count of what it writes."""

    latest: ClassVar[Running]

    def __init__(self, config: ClusterConfig, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
        self.writes: list[str] = []
        Running.latest = self

        def observer(verb: str, target: str, _status: int, _seconds: float) -> None:
            if verb in WRITES and not target.startswith(("leases", "events")):
                self.writes.append(f"{verb} {target}")

        class Watched(Client):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **{**options, "observer": observer})

        monkeypatch.setattr(process, "Client", Watched)
        local = frozenset({"localhost", "127.0.0.1:1"})  # where the registries of the tests listen
        options = process.Options(config, health_port=-1, inside=False, internal_registries=local, support=Support())
        self.task = asyncio.create_task(process.Operator(replace(options, **more)).run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def says(client: Client, name: str, kind: str, status: str) -> bool:
    return (await s.condition(client, name, kind)).get("status") == status


async def mentions(client: Client, name: str, kind: str, words: str) -> bool:
    return words in str((await s.condition(client, name, kind)).get("message"))


async def told(client: Client, name: str, kind: str, status: str, words: str = "") -> dict[str, Any] | None:
    """The condition as soon as it says that: what is asked of it afterwards is of the same moment."""
    found = await s.condition(client, name, kind)
    return found if found.get("status") == status and words in str(found.get("message")) else None


async def rests(client: Client, name: str) -> bool:
    """Whether a pass over this cluster wrote nothing. One that always writes never rests."""
    before = len(Running.latest.writes)
    async with a_pass("hostedcluster"):
        mark = {"metadata": {"annotations": {"example.com/look": uuid.uuid4().hex}}}
        await client.patch(k.HOSTEDCLUSTERS, name, "clusters", mark)
    return Running.latest.writes[before:] == []


async def gone(client: Client, name: str) -> bool:
    left = await client.get_or_none(k.HOSTEDCLUSTERS, name, "clusters")
    return left is None and await client.get_or_none(k.NAMESPACES, f"clusters-{name}") is None


def reports(client: Client, ns: str) -> Callable[[], Awaitable[None]]:
    """What controllers say of all that is there by now; more may come."""

    async def work() -> None:
        await s.report_ready(client, ns)

    return work


def hands(client: Client, ns: str, address: str = "127.0.0.1") -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        await s.give_address(client, ns, address)

    return work


@asynccontextmanager
async def in_process(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Running]]:
    """Gives what starts an operator, with options of the test's; all that were started are stopped at the end."""
    started: list[Running] = []

    def begin(**more: Any) -> Running:
        started.append(Running(load_config(server.kubeconfig), monkeypatch, **more))
        return started[-1]

    yield begin
    for running in started:
        await running.stop()
