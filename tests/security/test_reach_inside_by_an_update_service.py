"""Update services that lead the operator to its own machine or cluster, that never end, or that want a login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.support.router import own_address
from tests.support.security.hostile_registry import Hostile, hostile
from yarl import URL

from hcp.oci import documents
from hcp.oci.address_policy import AddressPolicy
from hcp.oci.documents import DocumentError, DocumentRefused
from hcp.oci.trust import Trust

GUARDED = AddressPolicy(guarded=True)
GRAPH = b'{"nodes": []}'
MOST = 1 << 20


async def _ask(url: str, *trusted: Hostile, policy: AddressPolicy = GUARDED, seconds: float = 60) -> bytes:
    """As the operator does."""
    trust = Trust(b"".join(one.ca_pem for one in trusted))
    return await documents.fetch(URL(url), trust, policy, accept="application/json", limit=MOST, seconds=seconds)


@pytest.fixture
async def inner(tmp_path: Path) -> AsyncIterator[Hostile]:
    """Something on the machine itself that nobody outside should reach."""
    async with hostile(tmp_path, "127.0.0.1", covers=("localhost",)) as made:
        made.serve("/graph", GRAPH)
        yield made


@pytest.fixture
async def outer(tmp_path: Path) -> AsyncIterator[Hostile]:
    """A server at an address that is fine."""
    async with hostile(tmp_path, own_address()) as made:
        made.serve("/graph", GRAPH)
        yield made


async def test_the_targets_answer_whoever_is_free_to_ask(inner: Hostile, outer: Hostile) -> None:
    assert await _ask(f"{inner.url}/graph", inner, policy=AddressPolicy()) == GRAPH
    assert await _ask(f"{outer.url}/graph", outer) == GRAPH
    declared = AddressPolicy(guarded=True, declared=frozenset({inner.registry}))
    assert await _ask(f"{inner.url}/graph", inner, policy=declared) == GRAPH


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_a_name_of_the_machine_itself(inner: Hostile, name: str) -> None:
    with pytest.raises(DocumentRefused, match="the machine itself"):
        await _ask(f"https://{name}:{inner.port}/graph", inner)
    assert inner.asked == []


async def test_an_address_of_the_management_cluster(outer: Hostile) -> None:
    policy = AddressPolicy(guarded=True, inside=lambda: [f"{own_address()}/32"])
    with pytest.raises(DocumentRefused, match="belongs to the management cluster"):
        await _ask(f"{outer.url}/graph", outer, policy=policy)
    assert outer.asked == []


async def test_a_redirect_to_the_machine_itself(inner: Hostile, outer: Hostile) -> None:
    outer.redirect("/graph", f"{inner.url}/graph")
    with pytest.raises(DocumentRefused, match="the machine itself"):
        await _ask(f"{outer.url}/graph", outer, inner)
    assert inner.asked == []


@pytest.mark.parametrize("target", ["http://example.invalid/graph", "file:///etc/passwd", "ftp://example.invalid/x"])
async def test_a_redirect_away_from_https(outer: Hostile, target: str) -> None:
    outer.redirect("/graph", target)
    with pytest.raises(DocumentError):
        await _ask(f"{outer.url}/graph", outer)


async def test_a_circle_of_redirects_ends(outer: Hostile) -> None:
    outer.redirect("/graph", f"{outer.url}/graph")
    with pytest.raises(DocumentRefused, match="redirects more than"):
        await _ask(f"{outer.url}/graph", outer)


async def test_more_than_fits_is_not_taken(outer: Hostile) -> None:
    outer.serve("/graph", b"x" * (MOST + 1))
    with pytest.raises(DocumentRefused, match="more than"):
        await _ask(f"{outer.url}/graph", outer)


async def test_an_answer_that_never_ends_is_left(outer: Hostile) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        made = web.StreamResponse()
        await made.prepare(request)
        while True:
            await made.write(b" ")
            await asyncio.sleep(0.05)

    outer.answers["/graph"] = drip
    with pytest.raises(DocumentError, match="no answer within"):
        await _ask(f"{outer.url}/graph", outer, seconds=2)


async def test_no_login_is_sent_even_when_it_is_wanted(outer: Hostile) -> None:
    outer.want_token("/graph", f"{outer.url}/token")
    with pytest.raises(DocumentRefused, match="401"):
        await _ask(f"{outer.url}/graph", outer)
    assert outer.logins == [] and outer.asked == ["/graph"]
