"""Pushing layouts to a real registry: nothing is sent twice, and mistakes are said in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.registry import Registry, start

from hcp.errors import HcpError
from hcp.oci import Reference, RegistryClient
from hcp.oci.push import Pusher
from hcp.oci.writer import ImageConfig, Layer, Layout, write_image


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made, process = start(tmp_path_factory.mktemp("push"), passwords=False)
    yield made
    process.kill()
    process.wait()


def _image(target: Path, text: str, base: Layout | None = None) -> Layout:
    layer = Layer()
    layer.file("data", text * 100_000)
    return write_image(target, "test", [layer], ImageConfig(), base=base)


async def test_what_is_there_is_not_sent_again(registry: Registry, tmp_path: Path) -> None:
    layout = _image(tmp_path, "one")
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher:
        assert await pusher.push(layout.path, "hcp/one") == layout.digest
        assert pusher.sent_bytes == layout.size
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as again:
        await again.push(layout.path, "hcp/one")
        await again.push(layout.path, "hcp/one", tag="v1")
        assert again.sent_bytes == 0


async def test_a_base_is_sent_once_for_two_repositories(registry: Registry, tmp_path: Path) -> None:
    base = _image(tmp_path / "base", "base")
    first = _image(tmp_path / "first", "first", base)
    second = _image(tmp_path / "second", "second", base)
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher:
        await pusher.push(first.path, "hcp/first")
        before = pusher.sent_bytes
        await pusher.push(second.path, "hcp/second", tag="1")
        shared = sum(int(item["size"]) for item in base.manifest["layers"])
        assert pusher.sent_bytes - before == second.size - shared


async def test_the_registry_gives_back_the_same_digest(registry: Registry, tmp_path: Path) -> None:
    layout = _image(tmp_path, "back")
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher:
        await pusher.push(layout.path, "hcp/back", tag="1.0")
    async with RegistryClient(ca_pem=registry.ca_pem) as client:
        assert await client.digest(Reference.parse(f"{registry.host}/hcp/back:1.0")) == layout.digest


async def test_a_certificate_of_somebody_else_is_refused(registry: Registry, tmp_path: Path) -> None:
    layout = _image(tmp_path, "x")
    async with Pusher(f"https://{registry.host}") as pusher:
        with pytest.raises(HcpError, match="pushing hcp/x to the registry"):
            await pusher.push(layout.path, "hcp/x")


async def test_a_registry_that_does_not_answer_is_named(tmp_path: Path) -> None:
    layout = _image(tmp_path, "x")
    async with Pusher("https://localhost:1") as pusher:
        with pytest.raises(HcpError, match="localhost:1"):
            await pusher.push(layout.path, "hcp/x")


async def test_a_refused_name_carries_the_registrys_words(registry: Registry, tmp_path: Path) -> None:
    layout = _image(tmp_path, "x")
    async with Pusher(f"https://{registry.host}", ca_pem=registry.ca_pem) as pusher:
        with pytest.raises(HcpError, match="the registry refused POST") as caught:
            await pusher.push(layout.path, "Hcp/UPPER")
    assert "404" in str(caught.value)
