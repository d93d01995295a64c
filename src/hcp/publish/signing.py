"""Signing published images, and finding out whether an image was signed with a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from hcp.errors import HcpError
from hcp.oci import RegistryClient, signature
from hcp.oci.errors import UnknownImage
from hcp.oci.push import Pusher
from hcp.oci.reference import Reference
from hcp.oci.writer_layout import MANIFEST_TYPE


async def sign(pusher: Pusher, client: RegistryClient, image: str, key: ec.EllipticCurvePrivateKey) -> bool:
    """Put a signature beside an image, besides those of others; one of this key is enough. Says whether it was made."""
    ref = Reference.parse(image)
    digest = await client.digest(ref)
    known = await _layers(client, ref, digest)
    if await _valid(client, ref, digest, known, key.public_key()):
        return False
    document = signature.payload(ref.name, digest)
    layers = [*known, signature.layer(document, signature.sign(key, document))]
    config, manifest = signature.image(layers)
    for data in (document, config):
        await pusher.put_blob(ref.repository, data)
    await pusher.put_manifest(ref.repository, str(signature.place(ref, digest).tag), manifest, MANIFEST_TYPE)
    return True


async def verify(client: RegistryClient, image: str, key: ec.EllipticCurvePublicKey) -> str:
    """The digest that was signed with the key; HcpError if it was not."""
    ref = Reference.parse(image)
    digest = await client.digest(ref)
    known = await _layers(client, ref, digest)
    if not known:
        raise HcpError(
            f"{ref} is not signed",
            cause=f"there is no image {signature.place(ref, digest)}",
            hint="push it with --sign-key, or use a release that is signed",
        )
    if not await _valid(client, ref, digest, known, key):
        raise HcpError(
            f"no signature of {ref} was made with this key",
            cause=f"{len(known)} signatures of {digest} are there, none fits",
            hint="use the publisher's public key; if it is that one, do not use this image",
        )
    return digest


async def _layers(client: RegistryClient, ref: Reference, digest: str) -> list[Mapping[str, Any]]:
    try:
        found = await client.manifest(signature.place(ref, digest))
    except UnknownImage:
        return []
    return [one for one in found.layers if one.get("mediaType") == signature.PAYLOAD_TYPE]


async def _valid(
    client: RegistryClient, ref: Reference, digest: str, layers: list[Mapping[str, Any]], key: ec.EllipticCurvePublicKey
) -> bool:
    for one in layers:
        said = str((one.get("annotations") or {}).get(signature.ANNOTATION) or "")
        document = await client.blob(signature.place(ref, digest), str(one.get("digest")))
        if signature.is_valid(key, document, said, digest):
            return True
    return False
