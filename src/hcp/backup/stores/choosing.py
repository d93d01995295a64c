"""From what a person writes to a store."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from hcp.backup.stores.base import Store
from hcp.backup.stores.folder import Folder
from hcp.errors import HcpError


def choose(text: str, s3: Callable[[str, str], Store]) -> Store:
    """`/a/folder`, `./a/folder`, or `s3://bucket/prefix`; `s3` makes the latter of bucket and prefix."""
    scheme, colon, _ = text.partition("://")
    if not colon:
        return Folder(text)
    if scheme != "s3":
        raise HcpError(
            f"a store cannot be {scheme}://", cause=f"{text!r} was given", hint="name a folder, or s3://BUCKET/PREFIX"
        )
    parts = urlsplit(text)
    if not parts.hostname or parts.netloc != parts.hostname or parts.query or parts.fragment:
        raise HcpError(f"{text!r} names no bucket", hint="s3://BUCKET or s3://BUCKET/PREFIX")
    return s3(parts.netloc, parts.path.strip("/"))
