"""The registry client against a server that behaves, and misbehaves, as registries do."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.unit.oci import layer

from hcp.oci import Auths, Mirror, RegistryClient
from hcp.oci.cache import LruCache
from hcp.oci.client import MANIFEST_TYPES
from hcp.oci.errors import BrokenImage, ImageUnauthorized, RegistryUnreachable, UnknownImage
from hcp.oci.pool import RegistryPool

PASSWORD = "Basic " + base64.b64encode(b"user:secret").decode()


def digest_of(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


@dataclass
class MemoryRegistry:
    """Holds blobs and manifests in memory; it may ask for a bearer token, or for the password with every request."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, bytes] = field(default_factory=dict)
    needs_token: bool = False
    needs_password: bool = False
    cut_after: int = 0
    requests: list[str] = field(default_factory=list)
    host: str = ""

    def add_image(self, tag: str, *contents: dict[str, bytes | None], arch: str = "amd64") -> str:
        config = json.dumps({"architecture": arch}).encode()
        found = [layer(files).getvalue() for files in contents]
        for raw in (config, *found):
            self.blobs[digest_of(raw)] = raw
        body = {
            "mediaType": MANIFEST_TYPES[0],
            "config": {"digest": digest_of(config)},
            "layers": [{"digest": digest_of(raw)} for raw in found],
        }
        return self.add_manifest(tag, body)

    def add_manifest(self, tag: str, body: dict[str, Any]) -> str:
        raw = json.dumps(body).encode()
        self.tags[tag] = self.tags[digest_of(raw)] = raw
        return digest_of(raw)

    async def token(self, request: web.Request) -> web.Response:
        self.requests.append(f"token {request.query['scope']}")
        if request.headers.get("Authorization") != PASSWORD:
            return web.Response(status=401)
        return web.json_response({"token": "good", "expires_in": 300})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        kind, name = request.match_info["kind"], request.match_info["name"]
        self.requests.append(f"{kind} {name}")
        if self.needs_token and request.headers.get("Authorization") != "Bearer good":
            challenge = f'Bearer realm="http://{self.host}/token",service="test",scope="repository:a/b:pull"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        if self.needs_password and request.headers.get("Authorization") != PASSWORD:
            self.requests.append("refused")
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="test"'})
        raw = (self.tags if kind == "manifests" else self.blobs).get(name)
        if raw is None:
            return web.Response(status=404)
        start = int(request.headers.get("Range", "bytes=0-")[6:-1])
        response = web.StreamResponse(status=206 if start else 200)
        response.content_length = len(raw) - start
        await response.prepare(request)
        if self.cut_after and kind == "blobs":
            await response.write(raw[start : start + self.cut_after])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(raw[start:])
        return response


@pytest.fixture
async def registry() -> AsyncIterator[MemoryRegistry]:
    fake = MemoryRegistry()
    app = web.Application()
    app.router.add_get("/token", fake.token)
    app.router.add_get("/v2/a/{repository}/{kind}/{name}", fake.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.host = f"127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


@pytest.fixture
async def client(registry: MemoryRegistry) -> AsyncIterator[RegistryClient]:
    async with RegistryClient(plain_http=[registry.host]) as made:
        yield made


async def test_files_come_from_the_topmost_layer_and_nothing_is_fetched_twice(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    base: dict[str, bytes | None] = {"etc/x": b"old", "etc/only": b"1", "etc/gone": b"1"}
    registry.add_image("t", base, {"etc/x": b"new", "etc/.wh.gone": None})
    image = f"{registry.host}/a/b:t"
    found = await client.read_files(image, ["etc/x", "/etc/only", "etc/gone", "etc/none"])
    assert found == {"etc/x": b"new", "/etc/only": b"1"}
    before = len(registry.requests)
    assert (await client.config(image))["architecture"] == "amd64"
    assert (await client.config(image))["architecture"] == "amd64"
    assert (await client.manifest(image)).digest == await client.digest(image)
    assert len(registry.requests) == before + 1


async def test_lower_layers_are_left_alone_once_enough_is_found(
    registry: MemoryRegistry, client: RegistryClient
) -> None:
    registry.add_image("t", {"big": b"base"}, {"need": b"1"})
    found = await client.read_files(f"{registry.host}/a/b:t", ["need", "wish"], enough=["need"])
    assert found == {"need": b"1"}
    assert len([r for r in registry.requests if r.startswith("blobs")]) == 1


async def test_of_a_list_the_fitting_platform_is_chosen(registry: MemoryRegistry, client: RegistryClient) -> None:
    arm = registry.add_image("arm", {"f": b"arm"}, arch="arm64")
    amd = registry.add_image("amd", {"f": b"amd"})
    entries = [
        {"digest": arm, "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": amd, "platform": {"os": "linux", "architecture": "amd64"}},
    ]
    listed = registry.add_manifest("both", {"manifests": entries})
    assert await client.read_files(f"{registry.host}/a/b:both", ["f"]) == {"f": b"amd"}
    assert await client.digest(f"{registry.host}/a/b:both") == listed
    registry.add_manifest("only-arm", {"manifests": entries[:1]})
    with pytest.raises(UnknownImage, match="no variant for linux/amd64: it has linux/arm64"):
        await client.manifest(f"{registry.host}/a/b:only-arm")


async def test_a_token_is_bought_once_with_the_pull_secret(registry: MemoryRegistry) -> None:
    registry.needs_token = True
    registry.add_image("t", {"f": b"1"})
    image = f"{registry.host}/a/b:t"
    auths = {"auths": {f"{registry.host}/a": {"username": "user", "password": "secret"}}}
    async with RegistryClient(auths, plain_http=[registry.host]) as client:
        assert await client.read_files(image, ["f"]) == {"f": b"1"}
    assert [r for r in registry.requests if r.startswith("token")] == ["token repository:a/b:pull"]


async def test_a_password_goes_along_once_a_registry_has_asked_for_it(registry: MemoryRegistry) -> None:
    registry.needs_password = True
    registry.add_image("t", {"f": b"1"})
    auths = {"auths": {registry.host: {"username": "user", "password": "secret"}}}
    async with RegistryClient(auths, plain_http=[registry.host]) as client:
        for repository in ("b", "c", "d"):
            await client.digest(f"{registry.host}/a/{repository}:t")
    assert registry.requests.count("refused") == 1


@pytest.mark.parametrize(
    ("auths", "sentence"),
    [
        ({}, "wants credentials for the image"),
        ({"username": "user", "password": "wrong"}, "to the account in the pull secret"),
    ],
)
async def test_missing_and_wrong_credentials_are_told_apart(
    registry: MemoryRegistry, auths: dict[str, str], sentence: str
) -> None:
    registry.needs_token = True
    async with RegistryClient(Auths({"auths": {registry.host: auths}}), plain_http=[registry.host]) as client:
        with pytest.raises(ImageUnauthorized, match=sentence) as caught:
            await client.manifest(f"{registry.host}/a/b:t")
    assert registry.host in (caught.value.hint or "")


async def test_a_broken_connection_is_continued_where_it_broke(
    registry: MemoryRegistry, client: RegistryClient, tmp_path: Path
) -> None:
    registry.add_image("t", {"f": bytes(range(256)) * 40})
    image = f"{registry.host}/a/b:t"
    digest = str((await client.manifest(image)).layers[0]["digest"])
    blob = registry.blobs[digest]
    registry.cut_after = len(blob) // 2 + 1
    assert await client.blob(image, digest) == blob
    assert registry.requests.count(f"blobs {digest}") == 2
    half = tmp_path / "blob"
    half.write_bytes(blob[:10])
    registry.cut_after = 0
    await client.save_blob(image, digest, half)
    assert half.read_bytes() == blob


async def test_content_that_is_not_its_digest_is_refused(registry: MemoryRegistry, client: RegistryClient) -> None:
    registry.add_image("t", {"f": b"1"})
    image = f"{registry.host}/a/b:t"
    manifest = await client.manifest(image)
    registry.blobs[str(manifest.layers[0]["digest"])] = b"other"
    with pytest.raises(BrokenImage, match="a layer has the digest"):
        await client.read_files(image, ["f"])
    wrong = "sha256:" + "0" * 64
    registry.tags[wrong] = b"{}"
    with pytest.raises(BrokenImage, match="sent sha256:"):
        await client.manifest(f"{registry.host}/a/b@{wrong}")


async def test_mirrors_are_asked_in_order_and_the_source_last(registry: MemoryRegistry) -> None:
    registry.add_image("t", {"f": b"1"})
    mirrors = [Mirror("source.invalid/x", ("127.0.0.1:1/dead", f"{registry.host}/a"))]
    plain = [registry.host, "127.0.0.1:1"]
    async with RegistryClient(mirrors=mirrors, plain_http=plain) as client:
        assert await client.read_files("source.invalid/x/b:t", ["f"]) == {"f": b"1"}
        manifest = await client.manifest("source.invalid/x/b:t")
        assert manifest.found_at.registry == registry.host
        with pytest.raises(UnknownImage) as caught:
            await client.manifest("source.invalid/x/b:nothing")
    text = str(caught.value)
    assert text.startswith("The image source.invalid/x/b:nothing cannot be read from any mirror or its source")
    assert "127.0.0.1:1/dead/b" in text
    assert registry.host in text


async def test_a_registry_that_is_not_there_is_named() -> None:
    async with RegistryClient(plain_http=["127.0.0.1:1"]) as client:
        with pytest.raises(RegistryUnreachable, match=r"127\.0\.0\.1:1 cannot be reached") as caught:
            await client.manifest("127.0.0.1:1/a/b:t")
    assert "127.0.0.1:1/a/b:t" in caught.value.sentence


async def test_the_pool_gives_one_client_per_settings() -> None:
    async with RegistryPool() as pool:
        one = pool.get({"auths": {}}, None, [Mirror("a", ("b",))])
        assert pool.get({"auths": {}}, None, [Mirror("a", ("b",))]) is one
        assert pool.get({"auths": {"q.io": {}}}, None, [Mirror("a", ("b",))]) is not one
        assert pool.get({"auths": {}}, None, []) is not one


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache: LruCache[bytes] = LruCache(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"
    cache.put("c", b"1234")
    assert cache.get("b") is None
    cache.put("huge", b"x" * 11)
    assert (cache.get("huge"), cache.get("a"), len(cache)) == (None, b"1234", 2)
