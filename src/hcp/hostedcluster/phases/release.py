"""Reading the release; the builders know its images from the next step on."""

from __future__ import annotations

from dataclasses import replace

from hcp.api import conditions as c
from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane import storage_plan
from hcp.controlplane.params import LOGIN_IMAGE
from hcp.guest import catalogs as guest_catalogs
from hcp.hostedcluster import catalogs, ignored_fields, ingress, upgrade
from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Scope
from hcp.release import overrides


async def run(scope: Scope) -> Learned:
    release, state = await scope.tools.releases.read(scope.cluster)
    if release is not None and (held := upgrade.problem(scope.cluster, state.image, release.version)):
        state = replace(state, reason=c.INVALID_IMAGE, problem=held)
        release = None
    again = LOOK_AGAIN if state.problem else None
    if release is None:
        return Learned(seen={"release": state}, again=again)
    text = scope.params.annotations.get(names.ANNOTATION_IMAGE_OVERRIDES, "")
    known = {"images": overrides.applied(release.components, text), "version": release.version}
    wrong = overrides.problems(release.components, text)
    unused = [f"annotation {names.ANNOTATION_IMAGE_OVERRIDES}: {problem}" for problem in wrong]
    if not release.has(*storage_plan.NEEDED):
        unused += ignored_fields.storage_not_in_release(scope.spec)
    if not release.has(names.AUTOSCALER) and names.ANNOTATION_AUTOSCALER_IMAGE not in scope.params.annotations:
        unused += ignored_fields.autoscaling_not_in_release(scope.spec)
    if not release.has(LOGIN_IMAGE):
        unused += ignored_fields.login_not_in_release(scope.spec)
    asked, partly = scope.params.annotations, list(scope.seen.partly_acted)
    if release.has(*guest_catalogs.NEEDED):
        unused += guest_catalogs.problems(asked)
        unused += guest_catalogs.unknown_sources(at(scope.spec, "configuration.operatorhub"))
        partly += catalogs.acted_on_in_part(scope)
    else:
        unused += ignored_fields.catalogs_not_in_release(scope.spec, asked)
    unused += ignored_fields.capabilities_not_in_release(scope.spec, release.components)
    if not release.has(ingress.IMAGE):
        partly += ignored_fields.ingress_not_in_release(scope.spec)
    seen = {"release": state, "unacted": [*scope.seen.unacted, *unused], "partly_acted": partly}
    return Learned(seen=seen, release=release, params=known, again=again)
