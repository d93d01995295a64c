"""Nothing has to be there for machines that nobody here makes; which disk fits is said."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.nodepool import validation
from hcp.nodepool.scope import Learned, Scope, refused


async def run(scope: Scope) -> Learned:
    problem = validation.unmanaged_problem(scope.name, scope.spec) or validation.foreign_platform(
        scope.spec, scope.cluster_spec
    )
    if problem:
        raise refused(c.VALID_PLATFORM_CONFIG, c.VALIDATION_FAILED, problem)
    disk = scope.known_release().boot_disk
    said = "Machines of this pool are your own: none is made for it"
    return Learned(
        said={
            c.VALID_PLATFORM_CONFIG: (True, c.AS_EXPECTED, said),
            c.VALID_PLATFORM_IMAGE: (True, c.AS_EXPECTED, f"A boot disk for your machines is in {disk}")
            if disk
            else None,
        }
    )
