"""What a pool of machines of the user's own asks for that only their owner can do is named, not refused."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.nodepool import ignored_fields, validation
from hcp.nodepool.scope import Learned, Scope
from hcp.runtime.conditions import Verdict
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    spec = scope.spec
    honoured = ignored_fields.unmanaged(spec)
    said: dict[str, Verdict | None] = {c.FIELDS_HONOURED: honoured}
    problem = validation.scaling_problem(spec)
    if problem:
        said[c.AUTOSCALING_ENABLED] = (False, c.VALIDATION_FAILED, problem)
        raise Waiting(problem, facts=Learned(said=said))
    asked = {c.AUTOSCALING_ENABLED: at(spec, "autoScaling"), c.AUTOREPAIR_ENABLED: at(spec, "management.autoRepair")}
    for kind, wish in asked.items():
        said[kind] = (False, c.FIELDS_NOT_HONOURED, honoured[2]) if wish else (False, c.AS_EXPECTED, "")
    said[c.UPDATE_MANAGEMENT_ENABLED] = ignored_fields.update_management(spec)
    return Learned(said=said)
