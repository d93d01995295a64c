"""One pass over one HostedCluster: what it knows and what it found so far."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hcp.controlplane.params import Params
from hcp.controlplane.rotation import Authority
from hcp.hostedcluster.cache import Cache
from hcp.hostedcluster.observed import Observed
from hcp.hostedcluster.releases import Releases
from hcp.release import Release
from hcp.runtime.context import OperatorContext
from hcp.runtime.ownership import Claim

Object = dict[str, Any]


@dataclass
class Scope:
    """Passed from phase to phase; `seen` becomes the status at the end."""

    ctx: OperatorContext
    cache: Cache
    releases: Releases
    cluster: Object
    params: Params
    now: dt.datetime
    seen: Observed = field(default_factory=Observed)
    # Whose the hosted namespace is, as the server said at the beginning of the pass.
    claim: Claim = field(default_factory=lambda: Claim(None, ours=False))
    release: Release | None = None
    authorities: dict[str, Authority] = field(default_factory=dict)
    # Secrets and ConfigMaps of this pass by (kind, name): what workloads mount, for their hashes.
    made: dict[tuple[str, str], Object] = field(default_factory=dict)
    # Seconds until time alone changes something.
    again: float | None = None

    @property
    def spec(self) -> Mapping[str, Any]:
        spec: Mapping[str, Any] = self.cluster["spec"]
        return spec

    @property
    def namespace(self) -> str:
        return self.params.namespace

    def change(self, **fields: Any) -> None:
        """Params are frozen; a pass learns more as it goes."""
        self.params = replace(self.params, **fields)

    async def apply(self, obj: Object) -> Object:
        """Apply, and remember Secrets and ConfigMaps."""
        live = await self.cache.apply(obj)
        self.remember(obj)
        return live

    def remember(self, obj: Object) -> None:
        if obj["kind"] in ("Secret", "ConfigMap"):
            self.made[(obj["kind"], obj["metadata"]["name"])] = obj
