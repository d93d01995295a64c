"""Writes whose answers are written down, and a check that the server kept its word, whatever happened meanwhile.

Each round makes a ConfigMap, moves a counter on and deletes an earlier ConfigMap, in this order. What was answered must
hold at the end; what got no answer may or may not have happened, but nothing else may. The counter is moved on from the
version that was seen last: a write that is still on its way somewhere cannot take it back later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.kube import Client, ClusterConfig
from hcp.kube.errors import Conflict, NotFound
from hcp.kube.resources import CONFIGMAPS

NS = "default"
_KEEP = 50
_LIMIT = 5.0


@dataclass
class Ledger:
    run: str
    """Begins the names of everything in it."""
    made: dict[str, int] = field(default_factory=dict)
    """Name → version that the server answered with."""
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    counted: int = 0
    """The highest number that was acknowledged, or read."""
    back: list[str] = field(default_factory=list)
    """Where the counter was found behind that."""
    tried: int = 0
    failures: int = 0

    def read(self, value: int) -> None:
        """The counter was found so."""
        if value < self.counted:
            self.back.append(f"the counter went back from {self.counted} to {value}")
        self.counted = max(self.counted, value)

    def problems(self, there: Mapping[str, int], counter: int) -> list[str]:
        """Everything that breaks a promise, given what is there in the end."""
        lost = [name for name in self.made if name not in self.deleted | self.unsure and name not in there]
        back = [name for name in self.deleted if name in there]
        strange = [name for name in there if name not in self.made and name not in self.unsure]
        order = sorted(self.made, key=lambda name: self.made[name])
        return [
            *(f"{name} was acknowledged and is lost" for name in lost),
            *(f"{name} was deleted and is back" for name in back),
            *(f"{name} was never asked for" for name in strange),
            *self.back,
            *([] if order == sorted(self.made) else ["acknowledged writes have versions in another order"]),
            *(
                []
                if self.counted <= counter <= self.tried
                else [f"the counter is {counter}, not {self.counted} or more"]
            ),
        ]


@asynccontextmanager
async def writing(config: ClusterConfig, run: str) -> AsyncIterator[Ledger]:
    """Writes without a pause until the block ends, and then compares."""
    ledger = Ledger(run)
    stopping = asyncio.Event()
    async with Client(config, user_agent="hcp-ledger") as client:
        made = await client.create(_config_map(_counter(ledger), {"value": "0"}))
        task = asyncio.create_task(_write(client, ledger, stopping, made["metadata"]["resourceVersion"]))
        try:
            yield ledger
        finally:
            stopping.set()
            await task
        there = {
            item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
            for item in await client.list(CONFIGMAPS, NS, labels=f"ledger={run}")
        }
        counter = int((await client.get(CONFIGMAPS, _counter(ledger), NS))["data"]["value"])
        assert ledger.problems(there, counter) == []


async def _write(client: Client, ledger: Ledger, stopping: asyncio.Event, version: str) -> None:
    """`version`: of the counter; empty while it is not known whether the last write happened."""
    number = 0
    while not stopping.is_set():
        number += 1
        name = f"{ledger.run}-{number:06}"
        made = await _answered(client.create(_config_map(name, {"n": str(number)}, ledger=ledger.run)), ledger)
        if made is None:
            ledger.unsure.add(name)
        else:
            ledger.made[name] = int(made["metadata"]["resourceVersion"])
        ledger.tried = number
        version = await _count(client, ledger, number, version)
        old = f"{ledger.run}-{number - _KEEP:06}"
        if old in ledger.made and old not in ledger.unsure:
            ledger.unsure.add(old)  # until its deletion is answered
            if await _answered(_delete(client, old), ledger) is not None:
                ledger.unsure.discard(old)
                ledger.deleted.add(old)


async def _count(client: Client, ledger: Ledger, number: int, version: str) -> str:
    """Move the counter on, once; gives its version, if that is known afterwards.

    After a write without an answer the counter is read first: with the version of that moment only one of both can
    happen. What is read must hold too.
    """
    name = _counter(ledger)
    if not version:
        found = await _answered(client.get(CONFIGMAPS, name, NS), ledger)
        if found is None:
            return ""
        version = str(found["metadata"]["resourceVersion"])
        ledger.read(int(found["data"]["value"]))
    patch = {"metadata": {"resourceVersion": version}, "data": {"value": str(number)}}
    made = await _answered(client.patch(CONFIGMAPS, name, NS, patch), ledger)
    if made is None:
        return ""
    ledger.counted = number
    return str(made["metadata"]["resourceVersion"])


def _counter(ledger: Ledger) -> str:
    return f"{ledger.run}-counter"


async def _delete(client: Client, name: str) -> bool:
    with contextlib.suppress(NotFound):  # an attempt before, whose answer was lost
        await client.delete(CONFIGMAPS, name, NS)
    return True


async def _answered(call: Any, ledger: Ledger) -> Any:
    """The answer, or nothing when there was none."""
    try:
        async with asyncio.timeout(_LIMIT):
            return await call
    except Conflict:
        return None  # an attempt before happened, whose answer was lost
    except (HcpError, TimeoutError):
        ledger.failures += 1
        return None


def _config_map(name: str, data: dict[str, str], **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NS, "labels": labels},
        "data": data,
    }
