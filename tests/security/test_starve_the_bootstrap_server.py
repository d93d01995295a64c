"""Requests without a token, or with a made-up one, from the address that all machines share."""

from __future__ import annotations

import json

import aiohttp
import pytest
from tests.support.bootstrap_server import Server

from hcp.ignition.pointer import authorization

FLOOD = 3_000


async def flood(target: Server) -> list[int]:
    """All from one address, as behind a router; the answers."""
    import ssl

    context = ssl.create_default_context(cadata=target.ca.cert_pem.decode())
    answers = []
    async with aiohttp.ClientSession() as session:
        for number in range(FLOOD):
            made_up = {"Authorization": authorization(f"made-up-{number}")} if number % 2 else {}
            async with session.get(f"https://localhost:{target.port}/ignition", ssl=context, headers=made_up) as answer:
                answers.append(answer.status)
    return answers


async def test_machines_with_a_good_token_are_served_all_the_same(
    bootstrap_server: Server,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (await bootstrap_server.ask("t1"))[0] == 200
    capsys.readouterr()
    answers = await flood(bootstrap_server)
    assert answers.count(503), "the flood was no flood"
    assert 200 not in answers
    assert [(await bootstrap_server.ask("t1"))[0] for _ in range(10)] == [200] * 10
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"audit"' in line]
    served = [line for line in lines if line["status"] == 200]
    assert len(served) == 10
    # Refusals are counted, not written one by one, and none is lost.
    assert len(lines) < FLOOD / 4
    assert len(lines) - len(served) + sum(line.get("refusedUnwritten", 0) for line in lines) == FLOOD
