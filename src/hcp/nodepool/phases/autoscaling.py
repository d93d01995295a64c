"""Whether something runs that lets the load decide the pool's size; a pool that asks in vain hears it."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.errors import HcpError
from hcp.nodepool import ignored_fields, scaling
from hcp.nodepool.scope import Learned, Scope, failed


async def run(scope: Scope) -> Learned | None:
    if not scaling.bounds(scope.spec):
        return None
    cluster = scope.known_cluster()
    # It is a part of the control plane, whatever release the pool's machines have.
    image = at(cluster, "spec.controlPlaneRelease.image") or at(cluster, "spec.release.image", "")
    try:
        found = await scope.tools.releases(cluster, image)
    except HcpError as error:
        message = f"Whether the control plane has an autoscaler is not known: {error}"
        raise failed(error, c.AUTOSCALING_ENABLED, c.VALIDATION_FAILED, message) from error
    said = scaling.verdict(scope.spec, cluster, found.components)
    honoured = ignored_fields.fields(scope.spec, "" if said[0] else said[2])
    return Learned(said={c.AUTOSCALING_ENABLED: said, c.FIELDS_HONOURED: honoured})
