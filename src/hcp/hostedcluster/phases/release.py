"""Reading the release; the builders know its images from the next step on."""

from __future__ import annotations

from hcp.hostedcluster.scope import LOOK_AGAIN, Learned, Scope


async def run(scope: Scope) -> Learned:
    release, state = await scope.tools.releases.read(scope.cluster)
    again = LOOK_AGAIN if state.problem else None
    if release is None:
        return Learned(seen={"release": state}, again=again)
    known = {"images": dict(release.components), "version": release.version}
    return Learned(seen={"release": state}, release=release, params=known, again=again)
