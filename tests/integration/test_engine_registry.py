"""Reading images and releases from a real registry with TLS and passwords."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.api_server import free_port
from tests.support.registry import Registry, push

from hcp import release
from hcp.oci import Mirror, RegistryClient, Trust
from hcp.oci.errors import ImageUnauthorized, RegistryUnreachable, RegistryUntrusted, UnknownImage
from hcp.oci.writer import ImageConfig, Layer, write_image

DISK = "registry.example.com/disk@sha256:" + "d" * 64


def release_layout(target: Path) -> Path:
    """A small release image, its description on top of another layer."""
    tags = [{"name": "etcd", "from": {"kind": "DockerImage", "name": "r.example.com/etcd@sha256:" + "e" * 64}}]
    references = {"kind": "ImageStream", "metadata": {"name": "1.36.3"}, "spec": {"tags": tags}}
    stream = {"architectures": {"x86_64": {"images": {"kubevirt": {"digest-ref": DISK}}}}}
    boot = {"kind": "ConfigMap", "data": {"stream": json.dumps(stream)}}
    base, top = Layer(), Layer()
    base.file("big", b"x" * 100_000)
    top.file(release.IMAGE_REFERENCES, json.dumps(references))
    top.file(release.BOOT_IMAGES, json.dumps(boot))
    write_image(target, "release", [base, top], ImageConfig())
    return target


async def test_a_release_is_read_by_tag_by_digest_and_through_a_mirror(open_registry: Registry, tmp_path: Path) -> None:
    digest = await push(open_registry, release_layout(tmp_path / "l"), "hcp/release", "1.36.3")
    host = open_registry.host
    async with RegistryClient(ca_pem=open_registry.ca_pem) as client:
        by_tag = await release.read(client, f"{host}/hcp/release:1.36.3")
        assert (by_tag.version, by_tag.boot_disk, by_tag.arch, by_tag.digest) == ("1.36.3", DISK, "amd64", digest)
        assert list(by_tag.components) == ["etcd"]
        assert await release.read(client, f"{host}/hcp/release@{digest}") is by_tag
    mirrors = [Mirror("quay.example.com/org", ("localhost:1/dead", f"{host}/hcp"), never_source=True)]
    trust = Trust(registries={host: open_registry.ca_pem.decode()})
    async with RegistryClient(mirrors=mirrors, trust=trust) as client:
        mirrored = await release.read(client, f"quay.example.com/org/release@{digest}")
        assert mirrored.components == by_tag.components


async def test_each_way_to_fail_has_its_own_sentence(open_registry: Registry, closed_registry: Registry) -> None:
    image = f"{open_registry.host}/hcp/nothing:1"
    async with RegistryClient(ca_pem=open_registry.ca_pem) as client:
        with pytest.raises(UnknownImage, match="does not exist"):
            await client.manifest(image)
    async with RegistryClient() as client:
        with pytest.raises(RegistryUntrusted, match="is not trusted"):
            await client.manifest(image)
        with pytest.raises(RegistryUnreachable, match="cannot be reached"):
            await client.manifest(f"localhost:{free_port()}/a/b:c")
    image = f"{closed_registry.host}/hcp/nothing:1"
    async with RegistryClient(ca_pem=closed_registry.ca_pem) as client:
        with pytest.raises(ImageUnauthorized, match="wants credentials"):
            await client.manifest(image)
    wrong = {"auths": {closed_registry.host: {"username": "pull", "password": "wrong"}}}
    async with RegistryClient(wrong, closed_registry.ca_pem) as client:
        with pytest.raises(ImageUnauthorized, match="account in the pull secret"):
            await client.manifest(image)
    async with RegistryClient(closed_registry.auths, closed_registry.ca_pem) as client:
        with pytest.raises(UnknownImage):
            await client.manifest(image)


async def test_an_image_that_is_no_release_is_refused(open_registry: Registry, tmp_path: Path) -> None:
    layer = Layer()
    layer.file("hello", b"world")
    write_image(tmp_path / "l", "plain", [layer], ImageConfig())
    await push(open_registry, tmp_path / "l", "hcp/plain", "1")
    async with RegistryClient(ca_pem=open_registry.ca_pem) as client:
        assert await client.read_files(f"{open_registry.host}/hcp/plain:1", ["hello"]) == {"hello": b"world"}
        with pytest.raises(release.NotARelease):
            await release.read(client, f"{open_registry.host}/hcp/plain:1")
