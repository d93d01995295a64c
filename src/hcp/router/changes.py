"""What changed since the last pass, so that a pass looks at nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hcp.api.paths import labels_of
from hcp.router.admission import key_of

SERVICE_LABEL = "kubernetes.io/service-name"
Object = dict[str, Any]
Listener = Callable[[Object | None, Object | None], None]


def service_of(one: Object) -> str:
    """The Service of an EndpointSlice, as namespace/name; empty where it says none."""
    name = labels_of(one).get(SERVICE_LABEL)
    return f"{one['metadata'].get('namespace', '')}/{name}" if name else ""


class Changes:
    """Keys of objects, by kind; informers fill it, a pass empties it."""

    def __init__(self) -> None:
        self.any = asyncio.Event()
        self.routes: set[str] = set()
        self.ingresses: set[str] = set()
        self.services: set[str] = set()
        self.secrets: set[str] = set()
        # What Gateways mean hangs together: it is looked at as a whole.
        self.gateways = False

    def listener(self, kind: str, key: Callable[[Object], str] = key_of) -> Listener:
        """For an informer whose objects are of that kind here."""

        def heard(old: Object | None, new: Object | None) -> None:
            found: set[str] = getattr(self, kind)
            found.update(name for one in (old, new) if one is not None and (name := key(one)))
            self.any.set()

        return heard

    def heard(self, _old: Object | None, _new: Object | None) -> None:
        """Something that is looked at in every pass."""
        self.any.set()

    def heard_gateways(self, _old: Object | None, _new: Object | None) -> None:
        self.gateways = True
        self.any.set()

    def take(self) -> Changes:
        """What is there; from now on it is empty."""
        taken = Changes()
        for kind in ("routes", "ingresses", "services", "secrets", "gateways"):
            mine = getattr(self, kind)
            setattr(taken, kind, mine)
            setattr(self, kind, type(mine)())
        self.any.clear()
        return taken
