"""Services and Routes; with what the cluster answers, the published addresses, if they are there already."""

from __future__ import annotations

import asyncio

from hcp.api import names
from hcp.controlplane import etcd, services
from hcp.hostedcluster.scope import Learned, Scope


async def run(scope: Scope) -> Learned:
    p = scope.params
    objects = [services.api_service(p), services.konnectivity_service(p), *etcd.services(p), *services.routes(p)]
    live = await asyncio.gather(*(scope.cache.apply(o) for o in objects))
    by_name = {(o["kind"], o["metadata"]["name"]): o for o in live}
    found, missing = {}, []
    for service, name in (("APIServer", names.API_SERVICE), ("Konnectivity", names.KONNECTIVITY_SERVICE)):
        publishing = p.published(service)
        live_service, route = by_name.get(("Service", name)), by_name.get(("Route", name))
        found[service] = services.endpoint(publishing, live_service, route, six=":" in p.service_networks[0])
        if found[service] is None:
            missing.append(services.waiting_for(publishing))
    api = by_name.get(("Service", names.API_SERVICE))
    return Learned(
        params={
            "api_endpoint": found["APIServer"],
            "api_addresses": services.balancer_addresses(found["APIServer"], api),
            "konnectivity_endpoint": found["Konnectivity"],
        },
        seen={"api_endpoint": found["APIServer"], "waiting_for": tuple(missing)},
    )
