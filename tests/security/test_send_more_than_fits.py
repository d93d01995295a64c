"""Registries that send manifests without end, layers that unpack to terabytes, or a byte a minute."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tarfile
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support import management as s
from tests.support.api_server import ApiServer
from tests.support.router import own_address
from tests.support.security.attacker import Attacker, enter
from tests.support.security.hostile_registry import Hostile, digest_of, hostile

from hcp.kube import Client
from hcp.oci import RegistryClient
from hcp.oci.client import MANIFEST_TYPES
from hcp.oci.errors import BrokenImage
from hcp.oci.limits import MAX_LAYERS, MAX_UNPACKED
from hcp.release import read
from hcp.release.errors import NotARelease

MANIFEST = "/v2/a/b/manifests/t"
NOTICEABLE = 120 << 20


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Hostile]:
    async with hostile(tmp_path, own_address()) as made:
        yield made


async def refused(registry: Hostile, words: str) -> None:
    """Reading a release fails with these words, and without taking much memory."""
    tracemalloc.start()
    try:
        async with RegistryClient(ca_pem=registry.ca_pem) as client:
            with pytest.raises(BrokenImage) as error:
                await read(client, registry.image())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert words in str(error.value), error.value
    assert peak < NOTICEABLE


def entry(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info


async def test_a_manifest_without_end(registry: Hostile) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100_000):
            await response.write(b" " * 65536)
        return response

    registry.answers[MANIFEST] = endless
    await refused(registry, "its manifest has more than")


async def test_a_manifest_as_deep_as_it_gets(registry: Hostile) -> None:
    registry.serve(MANIFEST, b"[" * 1_000_000, MANIFEST_TYPES[0])
    await refused(registry, "not JSON")


async def test_more_layers_than_any_image_has(registry: Hostile) -> None:
    layers = [{"digest": digest_of(str(number).encode())} for number in range(MAX_LAYERS + 1)]
    digest = registry.serve(MANIFEST, {"config": {}, "layers": layers}, MANIFEST_TYPES[0])
    registry.answers[f"/v2/a/b/manifests/{digest}"] = registry.answers[MANIFEST]
    await refused(registry, "layers")


async def test_lists_of_lists(registry: Hostile) -> None:
    own = {"manifests": [{"digest": digest_of(b"x"), "platform": {"os": "linux", "architecture": "amd64"}}]}
    inner = registry.serve("/inner", own)
    outer = {"manifests": [{"digest": inner, "platform": {"os": "linux", "architecture": "amd64"}}]}
    registry.answers[f"/v2/a/b/manifests/{inner}"] = registry.answers["/inner"]
    digest = registry.serve(MANIFEST, outer, MANIFEST_TYPES[0])
    registry.answers[f"/v2/a/b/manifests/{digest}"] = registry.answers[MANIFEST]
    await refused(registry, "another list")


async def test_a_layer_that_unpacks_to_more_than_a_disk(registry: Hostile) -> None:
    block = gzip.compress(b"\0" * (64 << 20), 1)
    head = gzip.compress(entry("big", 1 << 40).tobuf())
    # Members of a gzip file follow one another.
    registry.serve_image([head + block * (MAX_UNPACKED // (64 << 20) + 2)])
    await refused(registry, f"more than {MAX_UNPACKED} bytes")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
async def test_a_header_that_promises_gigabytes(registry: Hostile, kind: bytes) -> None:
    promised = entry("x", 7 << 30, kind).tobuf(tarfile.GNU_FORMAT)
    registry.serve_image([gzip.compress(promised) + gzip.compress(b"1" * (128 << 20), 1)])
    await refused(registry, "layer")


async def test_a_wanted_file_that_is_too_large(registry: Hostile) -> None:
    size = 64 << 20
    head = entry("release-manifests/image-references", size).tobuf()
    registry.serve_image([gzip.compress(head) + gzip.compress(b"{" * size, 1)])
    await refused(registry, "are permitted")


async def test_a_wanted_file_with_holes(registry: Hostile) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("release-manifests/image-references")
        info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 40)}
        archive.addfile(info, io.BytesIO())
    registry.serve_image([gzip.compress(file.getvalue())])
    await refused(registry, "are permitted")


@pytest.mark.parametrize("document", [b"[" * 500_000, b"9" * 1_000_000, b'{"metadata": 7}', b"\xff\xfe", b"null"])
async def test_a_release_that_is_none(registry: Hostile, document: bytes) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(entry("release-manifests/image-references", len(document)), io.BytesIO(document))
    registry.serve_image([file.getvalue()])
    async with RegistryClient(ca_pem=registry.ca_pem) as client:
        with pytest.raises(NotARelease):
            await read(client, registry.image())


async def test_registries_that_never_finish_take_no_worker_from_others(
    admin: Client, attacker: Attacker, management: ApiServer, operator: s.OperatorProcess, registry: Hostile
) -> None:
    held: list[asyncio.Event] = []

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        held.append(asyncio.Event())
        await response.write(b"{")
        await held[-1].wait()
        return response

    registry.answers[MANIFEST] = drip
    bundle = {"ca-bundle.crt": registry.ca_pem.decode()}
    metadata = {"name": "trust", "namespace": attacker.namespace}
    await attacker.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": bundle})
    for number in range(40):
        spec: dict[str, Any] = {"release": {"image": registry.image()}, "additionalTrustBundle": {"name": "trust"}}
        await attacker.cluster(f"slow-{number}", **spec)
    team = await enter(admin, management)
    async with team.client, asyncio.timeout(300):
        await team.cluster("quick")
        while (await team.condition("quick", "ValidReleaseImage")).get("status") != "False":
            await asyncio.sleep(0.2)
        while "still being read" not in (await attacker.condition("slow-0", "ValidReleaseImage")).get("message", ""):
            await asyncio.sleep(0.2)
    assert held, "nobody asked the slow registry"
    assert len(held) < 40
    for one in held:
        one.set()
    assert json.dumps(management.log("operator")).count("Traceback") == 0
