"""Image references that lead the operator to its own machine, its link or its cluster, or its login somewhere else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import management as s
from tests.support.registry import Registry
from tests.support.router import own_address
from tests.support.security.attacker import Attacker
from tests.support.security.hostile_registry import Hostile, hostile

from hcp.oci import Mirror, RegistryClient
from hcp.oci.address_policy import AddressPolicy
from hcp.oci.errors import ImageError, RegistryRefused, RegistryUnreachable, UnknownImage

MANIFEST = "/v2/a/b/manifests/t"
LOGIN = {"username": "team", "password": "of-the-team"}
GUARDED = AddressPolicy(guarded=True)


def client_of(
    *servers: Hostile, address_policy: AddressPolicy = GUARDED, mirrors: tuple[Mirror, ...] = ()
) -> RegistryClient:
    """The operator's client, with a login for the first server's registry and trust in all of them."""
    auths = {"auths": {servers[0].registry: LOGIN}}
    return RegistryClient(auths, b"".join(one.ca_pem for one in servers), mirrors, address_policy=address_policy)


@pytest.fixture
async def inner(tmp_path: Path) -> AsyncIterator[Hostile]:
    """Something on the machine itself that nobody outside should reach."""
    async with hostile(tmp_path, "127.0.0.1", covers=("localhost",)) as made:
        made.serve_image([b""])
        yield made


@pytest.fixture
async def outer(tmp_path: Path) -> AsyncIterator[Hostile]:
    """A registry at an address that is fine."""
    async with hostile(tmp_path, own_address()) as made:
        made.serve_image([b""])
        yield made


async def test_the_targets_answer_whoever_is_free_to_ask(inner: Hostile, outer: Hostile) -> None:
    for one in (inner, outer):
        async with client_of(one, address_policy=AddressPolicy()) as free:
            assert await free.digest(one.image())
    async with client_of(outer) as guarded:
        assert await guarded.digest(outer.image())


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"])
async def test_a_name_of_the_machine_itself(inner: Hostile, name: str) -> None:
    async with client_of(inner) as guarded:
        with pytest.raises(RegistryRefused, match="the machine itself"):
            await guarded.digest(f"{name}:{inner.port}/a/b:t")
    assert inner.asked == []


@pytest.mark.parametrize("name", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1"])
async def test_a_number_that_some_take_for_an_address(inner: Hostile, name: str) -> None:
    async with client_of(inner) as guarded:
        with pytest.raises(ImageError):
            await guarded.digest(f"{name}:{inner.port}/a/b:t")
    assert inner.asked == []


async def test_a_metadata_address(inner: Hostile) -> None:
    async with client_of(inner) as guarded:
        for address in ("169.254.169.254", "[fe80::1]", "[64:ff9b::a9fe:a9fe]"):
            with pytest.raises(RegistryRefused, match="of its link"):
                await guarded.digest(f"{address}/a/b:t")


async def test_an_address_of_the_cluster_unless_declared(outer: Hostile) -> None:
    address_policy = AddressPolicy(guarded=True, inside=lambda: ["10.0.0.0/32", f"{own_address()}/32"])
    async with client_of(outer, address_policy=address_policy) as guarded:
        with pytest.raises(RegistryRefused, match="belongs to the management cluster"):
            await guarded.digest(outer.image())
    assert outer.asked == []
    declared = AddressPolicy(guarded=True, declared=frozenset({outer.registry}), inside=address_policy.inside)
    async with client_of(outer, address_policy=declared) as guarded:
        assert await guarded.digest(outer.image())


async def test_a_name_that_means_something_else_a_moment_later(inner: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer of the attacker's name server is harmless, every later one is not."""
    real = socket.getaddrinfo
    answers: list[str] = []

    def turning(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host != "turning.example.com":
            return real(host, port, *args, **more)
        answers.append(own_address() if not answers else "127.0.0.1")
        return real(answers[-1], port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", turning)
    for expected in (RegistryUnreachable, RegistryRefused, RegistryRefused):
        async with client_of(inner) as guarded:
            with pytest.raises(expected):
                await guarded.digest(f"turning.example.com:{inner.port}/a/b:t")
    assert answers[1:] == ["127.0.0.1", "127.0.0.1"]
    assert inner.asked == []


async def test_a_name_with_one_good_and_one_bad_address(inner: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def both(host: Any, port: Any, *args: Any, **more: Any) -> Any:
        if host != "both.example.com":
            return real(host, port, *args, **more)
        # Nobody listens at the first one, so that the second is tried.
        return [found for one in (own_address(), "127.0.0.1") for found in real(one, port, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    async with client_of(inner) as guarded:
        with pytest.raises(RegistryRefused, match="the machine itself"):
            await guarded.digest(f"both.example.com:{inner.port}/a/b:t")
    assert inner.asked == []


async def test_a_redirect_to_the_inside(inner: Hostile, outer: Hostile) -> None:
    outer.redirect(MANIFEST, f"{inner.url}{MANIFEST}")
    async with client_of(outer, inner) as guarded:
        with pytest.raises(RegistryRefused, match="the machine itself"):
            await guarded.digest(outer.image())
    assert inner.asked == []


async def test_a_mirror_inside(inner: Hostile) -> None:
    mirror = Mirror("registry.example.com/a", (f"{inner.registry}/a",), never_source=True)
    async with client_of(inner, mirrors=(mirror,)) as guarded:
        with pytest.raises(RegistryRefused):
            await guarded.digest("registry.example.com/a/b:t")
    assert inner.asked == []


async def test_a_token_service_that_is_somebody_else(inner: Hostile, outer: Hostile) -> None:
    inner.serve("/token", {"token": "good"})
    outer.want_token(MANIFEST, f"{inner.url}/token")
    for address_policy in (GUARDED, AddressPolicy()):
        async with client_of(outer, inner, address_policy=address_policy) as client:
            with pytest.raises(RegistryRefused, match="its certificate does not cover"):
                await client.digest(outer.image())
    assert inner.logins == []
    assert inner.asked == []


async def test_a_token_service_that_the_certificate_covers_is_used(inner: Hostile, tmp_path: Path) -> None:
    inner.serve("/token", {"token": "good"})
    async with hostile(tmp_path, own_address(), covers=("localhost",)) as registry:
        registry.serve_image([b""])
        registry.want_token(MANIFEST, f"https://localhost:{inner.port}/token")
        async with client_of(registry, inner, address_policy=AddressPolicy()) as client:
            assert await client.digest(registry.image())
        assert len(inner.logins) == 1
        # Covered, but inside: not for the operator.
        async with client_of(registry, inner) as guarded:
            with pytest.raises(RegistryRefused, match="the machine itself"):
                await guarded.digest(registry.image())
    assert len(inner.logins) == 1


@pytest.mark.parametrize(
    "realm", ["http://{host}/token", "file:///etc/passwd", "//", "https://[", "https://x:99999999/"]
)
async def test_a_token_service_that_is_none(outer: Hostile, realm: str) -> None:
    outer.want_token(MANIFEST, realm.format(host=outer.registry))
    async with client_of(outer) as guarded:
        with pytest.raises(ImageError):
            await guarded.digest(outer.image())
    assert outer.logins == []


async def test_a_login_does_not_travel_with_a_redirect(inner: Hostile, outer: Hostile) -> None:
    outer.serve("/token", {"token": "good"})
    outer.redirect(MANIFEST, f"{inner.url}{MANIFEST}")
    outer.want_token(MANIFEST, f"{outer.url}/token")
    async with client_of(outer, inner, address_policy=AddressPolicy()) as client:
        assert await client.digest(outer.image())
    assert inner.asked == [MANIFEST]
    assert inner.logins == []
    # Neither does the password when the token service sends us on.
    outer.redirect("/token", f"{inner.url}/token")
    inner.serve("/token", {"token": "good"})
    async with client_of(outer, inner, address_policy=AddressPolicy()) as client:
        await client.digest(outer.image())
    assert inner.logins == []


async def test_plain_http_unless_declared(tmp_path: Path, outer: Hostile) -> None:
    async with hostile(tmp_path, own_address(), tls=False) as plain:
        plain.serve_image([b""])
        async with client_of(plain) as guarded:
            with pytest.raises(RegistryUnreachable):
                await guarded.digest(plain.image())
        outer.redirect(MANIFEST, f"{plain.url}{MANIFEST}")
        async with client_of(outer) as guarded:
            with pytest.raises(RegistryRefused, match="not served over https"):
                await guarded.digest(outer.image())
        assert plain.asked == []
        declared = AddressPolicy(guarded=True, insecure=frozenset({plain.registry}))
        async with client_of(plain, address_policy=declared) as guarded:
            assert await guarded.digest(plain.image())


async def test_a_real_registry_is_asked_when_it_is_declared(
    closed_registry: Registry,
) -> None:
    async with RegistryClient(closed_registry.auths, closed_registry.ca_pem, address_policy=GUARDED) as guarded:
        with pytest.raises(RegistryRefused, match="the machine itself"):
            await guarded.digest(f"{closed_registry.host}/a/b:t")
    declared = AddressPolicy(guarded=True, declared=frozenset({closed_registry.host}))
    async with RegistryClient(closed_registry.auths, closed_registry.ca_pem, address_policy=declared) as guarded:
        with pytest.raises(UnknownImage):
            await guarded.digest(f"{closed_registry.host}/a/b:t")


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    """A port of the machine, and who connected to it."""
    seen: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server.getsockname()[1], seen
        while True:
            try:
                seen.append(str(server.accept()[1]))
            except BlockingIOError:
                break
    assert seen == []


async def test_a_team_writes_such_names_into_its_hosted_cluster(
    attacker: Attacker, operator: s.OperatorProcess, listener: tuple[int, list[str]]
) -> None:
    port = listener[0]
    named = {
        "loopback": f"127.0.0.1:{port}/hcp/release:1",
        "every": f"0.0.0.0:{port}/hcp/release:1",
        "metadata": "169.254.169.254/latest/meta-data:1",
    }
    for name, image in named.items():
        await attacker.cluster(name, release={"image": image})
    sources = [{"source": "registry.example.com/hcp", "mirrors": [f"127.0.0.1:{port}/hcp"]}]
    await attacker.cluster(
        "mirrored", release={"image": "registry.example.com/hcp/release:1"}, imageContentSources=sources
    )
    async with asyncio.timeout(300):
        for name in (*named, "mirrored"):
            while True:
                said = await attacker.condition(name, "ValidReleaseImage")
                if said.get("status") == "False":
                    break
                await asyncio.sleep(0.2)
            assert "the machine itself or of its link" in said["message"], said
    assert not operator.ended
