"""Services and Routes; with what the cluster answers, the published addresses, if they are there already."""

from __future__ import annotations

import asyncio

from hcp.api import names
from hcp.controlplane import etcd, services
from hcp.hostedcluster.scope import Learned, Scope
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    p = scope.params
    objects = [services.api_service(p), services.konnectivity_service(p), *etcd.services(p), *services.routes(p)]
    live = await asyncio.gather(*(scope.cache.apply(o) for o in objects))
    by_name = {(o["kind"], o["metadata"]["name"]): o for o in live}
    found, missing = {}, []
    for service, name in (("APIServer", names.API_SERVICE), ("Konnectivity", names.KONNECTIVITY_SERVICE)):
        publishing = p.published(service)
        found[service] = services.endpoint(publishing, by_name.get(("Service", name)), by_name.get(("Route", name)))
        if found[service] is None:
            missing.append(services.waiting_for(publishing))
    return Learned(
        params={"api_endpoint": found["APIServer"], "konnectivity_endpoint": found["Konnectivity"]},
        seen={"api_endpoint": found["APIServer"], "waiting_for": tuple(missing)},
    )


async def addresses(scope: Scope) -> None:
    """Stops the pass while an address is missing; the event that brings it starts the next one."""
    if scope.params.api_endpoint is None or scope.params.konnectivity_endpoint is None:
        raise Waiting("; ".join(scope.seen.waiting_for))
