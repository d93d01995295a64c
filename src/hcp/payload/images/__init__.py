"""Images, releases and boot disks."""

from __future__ import annotations

from collections.abc import Iterable

from hcp.payload.component import Component


def components() -> Iterable[Component]:
    return ()
