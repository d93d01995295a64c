"""Official images: pulled by digest with our own registry client, whole or for the programs in them."""

from __future__ import annotations

import asyncio
import shutil
import tarfile
import zlib
from pathlib import Path

from hcp.errors import HcpError
from hcp.oci import RegistryClient
from hcp.oci.errors import BrokenImage, RegistryUnreachable, WebPage
from hcp.oci.layers import clean
from hcp.oci.writer_layout import MANIFEST_TYPE, read_layout, write_index
from hcp.payload import shared_blobs
from hcp.payload.context import BuildContext
from hcp.payload.mirrors import configured
from hcp.payload.official import OfficialImage

_TRIES = 5
_AT_ONCE = 3


def fetch(item: OfficialImage, ctx: BuildContext) -> None:
    """Pulls one image into the artifact (`image/`, when it is wanted as a whole) or takes programs out of it."""
    layout = ctx.out / "image" if item.name else ctx.scratch / "official"
    asyncio.run(_pull(item, layout, ctx))
    if not item.name:
        _take(item, layout, ctx.out)


async def _pull(item: OfficialImage, layout: Path, ctx: BuildContext) -> None:
    """A registry that is busy or breaks off is asked again, a web page in its place is not; what came is kept."""
    mirrors = configured()
    async with RegistryClient(mirrors=mirrors.images, plain_http=mirrors.plain_http, trust_env=True) as client:
        for attempt in range(_TRIES):
            try:
                await _pull_once(client, item, layout, ctx)
                return
            except (RegistryUnreachable, BrokenImage) as error:
                if attempt == _TRIES - 1 or isinstance(error, WebPage):
                    raise
                for broken in (layout / "blobs" / "sha256").glob(".part-*"):
                    if attempt % 2:  # continued once; then from the beginning, in case its first half was wrong
                        broken.unlink()
                await asyncio.sleep(0.25 * 2**attempt)


async def _pull_once(client: RegistryClient, item: OfficialImage, layout: Path, ctx: BuildContext) -> None:
    manifest = await client.manifest(item.image)
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    descriptors = [dict(manifest.body["config"]), *map(dict, manifest.layers)]
    total = sum(int(descriptor["size"]) for descriptor in descriptors)
    ctx.say(f"pulling {item.image} ({total >> 20} MiB)")
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(digest: str) -> None:
        target = blobs / digest.removeprefix("sha256:")

        async def fetch() -> None:
            part = blobs / f".part-{target.name}"
            async with slots:
                await client.save_blob(item.image, digest, part)
            part.rename(target)

        await shared_blobs.get(digest, target, ctx.cache, fetch)

    await asyncio.gather(*(one(digest) for digest in dict.fromkeys(str(entry["digest"]) for entry in descriptors)))
    raw = await client.raw_manifest(item.image)
    (blobs / manifest.digest.removeprefix("sha256:")).write_bytes(raw)
    note = {
        "io.containerd.image.name": item.name or item.image,
        "org.opencontainers.image.ref.name": item.name or item.image,
        "hcp.official": f"{item.image}@{manifest.digest}",
    }
    kind = str(manifest.body.get("mediaType") or MANIFEST_TYPE)
    write_index(layout, manifest.digest, len(raw), note, kind)
    with ctx.log.open("a") as log:
        log.write(f"pulled {item.image}@{manifest.digest}\n")


def _take(item: OfficialImage, folder: Path, out: Path) -> None:
    """Looks into the layers from the top: the first that has a program has the one that a container would see."""
    layout = read_layout(folder)
    wanted = {clean(member): out / path for member, path in item.members.items()}
    for descriptor in reversed(layout.manifest["layers"]):
        try:
            with tarfile.open(layout.blob(descriptor["digest"])) as archive:
                for member in archive:
                    if member.isfile() and clean(member.name) in wanted:
                        _copy(archive, member, wanted.pop(clean(member.name)))
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise HcpError(f"A layer of {item.image} cannot be read", cause=str(error)) from error
        if not wanted:
            return
    raise HcpError(f"{item.image} does not hold {', '.join(sorted(wanted))}")


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = archive.extractfile(member)
    assert content is not None, "a regular file has content"
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as handle:
        shutil.copyfileobj(content, handle, 1 << 20)
    target.chmod(0o755)
