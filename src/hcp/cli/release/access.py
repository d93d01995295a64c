"""How the `release` commands reach registries, and what they take for a release. Loaded when one of them runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from hcp.cli.engine.command import Call, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from hcp.oci import Reference, RegistryClient
    from hcp.release import Release


def authorities(call: Call) -> bytes | None:
    """The PEM text of --ca, checked before anything is asked."""
    if not call.text("ca"):
        return None
    import ssl

    from hcp.cli.engine.files import read, refuse

    data = read("ca", call.text("ca"))
    try:
        ssl.create_default_context().load_verify_locations(cadata=data.decode())
    except (ssl.SSLError, ValueError) as error:
        raise refuse("ca", call.text("ca"), str(error), "one or more PEM certificates") from None
    return data


@asynccontextmanager
async def reader(call: Call, ref: Reference, *, anonymous: bool = False) -> AsyncIterator[RegistryClient]:
    """A client for the registry of an image, with this person's login there."""
    from hcp.oci import Auths, RegistryClient, logins

    auths = Auths(None) if anonymous else logins.find(ref, call.text("authfile")).auths
    insecure = [ref.registry] if call.switch("insecure") else []
    async with RegistryClient(auths, authorities(call), plain_http=insecure, trust_env=True) as client:
        yield client


@contextmanager
def in_these_words(ref: Reference) -> Iterator[None]:
    """Errors of the registry with the flags of these commands instead of those of clusters."""
    from hcp.errors import HcpError
    from hcp.oci import errors

    try:
        yield
    except errors.ImageUnauthorized as error:
        raise HcpError(
            f"the registry {ref.registry} does not let you read {ref.repository}",
            hint=f"log in (podman login {ref.registry}, docker login {ref.registry}), or name a file with --authfile",
        ) from error
    except errors.RegistryUntrusted as error:
        raise HcpError(
            f"the certificate of the registry {ref.registry} is not trusted",
            cause=error.cause,
            hint="give the CA that signed it as a PEM file with --ca",
        ) from error


async def read_release(call: Call, text: str) -> Release:
    """A release from wherever the text points to."""
    from pathlib import Path

    from hcp import release
    from hcp.oci import Reference
    from hcp.oci.writer import read_layout
    from hcp.release.layout import from_layout

    folder = text.removeprefix("oci:")
    if text.startswith(("oci:", "/", "./", "../")) or (Path(folder) / "index.json").is_file():
        return from_layout(read_layout(Path(folder)), folder)
    found = built(text)
    if found is not None:
        return from_layout(read_layout(found / "image"), f"release {text}")
    if "/" not in text:
        raise UsageError(
            f'there is no release "{text}" on this machine',
            cause=f"built here: {', '.join(local_minors()) or 'none'}",
            hint="hcp payload build release-MINOR builds one; or give an image reference",
        )
    ref = Reference.parse(text.removeprefix("docker://"))
    async with reader(call, ref) as client:
        with in_these_words(ref):
            return await release.read(client, str(ref))


def minors(*, usual: bool = False) -> list[str]:
    """The minors that can be built, newest first; one that can do volumes comes after the plain one.

    `usual` leaves out those that are only made on request.
    """
    from hcp.payload.registry import default_registry

    names = default_registry().usual() if usual else default_registry().names()
    found = [name.removeprefix("release-") for name in names if name.startswith("release-")]
    return sorted(found, key=lambda minor: ([-int(part) for part in minor.partition("-")[0].split(".")], minor))


def local_minors() -> list[str]:
    from hcp import payload

    return [minor for minor in minors() if payload.find(f"release-{minor}") is not None]


def built(text: str) -> Path | None:
    """The artifact of a release that was built here, by minor or by version; None if there is none."""
    from hcp import payload
    from hcp.payload.registry import default_registry

    for minor in minors():
        name = f"release-{minor}"
        if text in (minor, default_registry().get(name).version):
            return payload.find(name)
    return None
