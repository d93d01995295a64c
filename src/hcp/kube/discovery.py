"""Asking a server which kinds it serves: one request per group and version, remembered."""

from __future__ import annotations

import time
from typing import Any

from hcp.errors import HcpError
from hcp.kube import errors
from hcp.kube.errors import Call
from hcp.kube.resources import Resource
from hcp.kube.transport import Transport

# A kind that is missing now may be installed any moment: look again after this long.
MISSING_FOR = 20.0


class Discovery:
    """What one API server serves."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known: dict[str, dict[str, Resource]] = {}
        self._missing: dict[str, float] = {}

    async def kinds(self, api_version: str) -> dict[str, Resource]:
        """Kind name → Resource for one group and version; empty if the server does not have it."""
        if api_version in self._known:
            return self._known[api_version]
        if time.monotonic() < self._missing.get(api_version, 0.0):
            return {}
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        call = Call("get", root, server=self._transport.config.server)
        try:
            found = await self._transport.json(call, "GET", root)
        except errors.NotFound:
            found = {}
        kinds = _parse(api_version, found)
        if kinds:
            self._known[api_version] = kinds
        else:
            self._missing[api_version] = time.monotonic() + MISSING_FOR
        return kinds

    async def resource(self, api_version: str, kind: str) -> Resource:
        """The resource of one kind."""
        kinds = await self.kinds(api_version)
        if kind not in kinds:
            self._known.pop(api_version, None)  # a new CRD may have added it since we looked
            kinds = await self.kinds(api_version)
        if kind not in kinds:
            raise HcpError(
                f"The cluster {self._transport.config.server} does not know the kind {kind} ({api_version}).",
                hint="Install the component that brings this kind.",
            )
        return kinds[kind]

    async def has(self, res: Resource) -> bool:
        """Whether this kind is served."""
        kinds = await self.kinds(res.api_version)
        if res.kind in kinds:
            return True
        if kinds and time.monotonic() >= self._missing.get(f"{res.api_version}#{res.kind}", 0.0):
            self._missing[f"{res.api_version}#{res.kind}"] = time.monotonic() + MISSING_FOR
            self._known.pop(res.api_version, None)
            return res.kind in await self.kinds(res.api_version)
        return False

    async def groups(self) -> dict[str, str]:
        """API group → preferred version, freshly asked."""
        call = Call("get", "/apis", server=self._transport.config.server)
        found = await self._transport.json(call, "GET", "/apis")
        return {g["name"]: g["preferredVersion"]["version"] for g in found.get("groups") or ()}

    def forget(self) -> None:
        """Ask again for everything, for example after installing CRDs."""
        self._known.clear()
        self._missing.clear()


def _parse(api_version: str, found: dict[str, Any]) -> dict[str, Resource]:
    group, _, version = api_version.rpartition("/")
    return {
        r["kind"]: Resource(group, version, r["name"], r["kind"], bool(r.get("namespaced")))
        for r in found.get("resources") or ()
        if "/" not in r["name"]
    }
