"""Autoscaling, autorepair and update settings, checked; what has no effect is named."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.nodepool import ignored_fields, validation
from hcp.nodepool.scope import Learned, Scope
from hcp.runtime.conditions import Verdict
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    spec = scope.spec
    # Whether autoScaling has an effect is known with the release.
    said: dict[str, Verdict | None] = {}
    if not spec.get("autoScaling"):
        said |= {c.FIELDS_HONOURED: ignored_fields.fields(spec), c.AUTOSCALING_ENABLED: (False, c.AS_EXPECTED, "")}
    problem = validation.scaling_problem(spec)
    if problem:
        said[c.AUTOSCALING_ENABLED] = (False, c.VALIDATION_FAILED, problem)
        raise Waiting(problem, facts=Learned(said=said))
    said[c.AUTOREPAIR_ENABLED] = (bool(at(spec, "management.autoRepair")), c.AS_EXPECTED, "")
    problem = validation.management_problem(spec)
    if problem:
        said[c.UPDATE_MANAGEMENT_ENABLED] = (False, c.VALIDATION_FAILED, problem)
        raise Waiting(problem, facts=Learned(said=said))
    said[c.UPDATE_MANAGEMENT_ENABLED] = (True, c.AS_EXPECTED, "")
    return Learned(said=said)
