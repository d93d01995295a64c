"""Deleting from a registry what an image set names: first a list to look at, then the deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hcp.errors import HcpError
from hcp.mirror.config import API_VERSION
from hcp.mirror.plan import EXIT_BITS, Kind, Plan
from hcp.oci import RegistryClient
from hcp.oci.errors import UnknownImage
from hcp.oci.push import Pusher, together
from hcp.oci.reference import Reference
from hcp.publish.target import Target

KIND = "DeleteImageList"


@dataclass(frozen=True)
class Doomed:
    kind: Kind
    source: str
    repository: str
    tag: str


@dataclass
class Deleted:
    gone: list[Doomed] = field(default_factory=list)
    absent: list[Doomed] = field(default_factory=list)
    # Tags that could not be taken off an image that others still name.
    kept: list[Doomed] = field(default_factory=list)


def listed(plan: Plan, target: Target) -> dict[str, Any]:
    """The document a person looks at before anything is deleted."""
    items = [
        {
            "imageName": item.source or f"made here ({item.made})",
            "imageReference": f"docker://{target.registry}/{target.repository(item.repository)}:{item.tag}",
            "type": item.kind,
        }
        for item in plan.items
    ]
    return {"kind": KIND, "apiVersion": API_VERSION, "items": items}


def parse(document: Any, target: Target) -> list[Doomed]:
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise HcpError(f"the file is no {KIND}", hint="mirror delete --generate writes one")
    found = []
    for entry in document.get("items") or ():
        try:
            ref = Reference.parse(str(entry["imageReference"]).removeprefix("docker://"))
            kind, name = str(entry["type"]), str(entry["imageName"])
        except (KeyError, TypeError) as error:
            raise HcpError(f"an entry of the {KIND} is not whole", cause=repr(error)) from error
        if ref.registry != target.registry:
            raise HcpError(
                f"{ref} is not in {target.registry}", hint="name the registry that the list was generated for"
            )
        if kind not in EXIT_BITS:
            raise HcpError(f'"{kind}" is no type of image', hint=f"allowed: {', '.join(EXIT_BITS)}")
        found.append(Doomed(kind, name, ref.repository, ref.tag or "latest"))
    return found


async def delete(pusher: Pusher, client: RegistryClient, doomed: list[Doomed]) -> Deleted:
    """An image goes when all its tags in a repository are on the list; else only the tags that are."""
    done = Deleted()
    for repository in dict.fromkeys(one.repository for one in doomed):
        await _repository(pusher, client, repository, [one for one in doomed if one.repository == repository], done)
    return done


async def _repository(
    pusher: Pusher, client: RegistryClient, repository: str, doomed: list[Doomed], done: Deleted
) -> None:
    try:
        tags = await client.tags(Reference(pusher.registry, repository))
    except UnknownImage:
        tags = []
    digests = dict(zip(tags, await together(pusher.digest(repository, tag) for tag in tags), strict=True))
    going = {one.tag for one in doomed}
    staying = {digest for tag, digest in digests.items() if tag not in going}
    deleted: set[str] = set()
    for one in doomed:
        digest = digests.get(one.tag)
        if digest is None:
            done.absent.append(one)
        elif digest in staying:
            (done.gone if await pusher.delete(repository, one.tag) else done.kept).append(one)
        else:
            if digest not in deleted:
                await pusher.delete(repository, digest)
                deleted.add(digest)
            done.gone.append(one)
