"""Reading the release, and holding it against the pool's and the cluster's versions."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_SKIP_RELEASE_VALIDATION
from hcp.api.paths import at
from hcp.api.versions import Version, parse_version, release_problem, skew_problem
from hcp.errors import HcpError
from hcp.nodepool import validation
from hcp.nodepool.scope import Learned, Scope, failed
from hcp.runtime.conditions import Verdict
from hcp.runtime.phases import Waiting


async def run(scope: Scope) -> Learned:
    cluster = scope.known_cluster()
    image = at(scope.pool, "spec.release.image") or at(cluster, "spec.release.image", "")
    try:
        found = await scope.tools.releases(cluster, image)
        wanted, current = parse_version(found.version), parse_version(scope.version) if scope.version else None
        theirs = await _cluster_version(scope)
    except HcpError as error:
        message = f"Failed to get release image: {error}"
        raise failed(error, c.VALID_RELEASE_IMAGE, c.VALIDATION_FAILED, message) from error
    said: dict[str, Verdict | None] = {c.SUPPORTED_VERSION_SKEW: _skew(wanted, theirs)}
    problem = release_problem(wanted, current, theirs)
    if problem and ANNOTATION_SKIP_RELEASE_VALIDATION not in scope.pool_annotations:
        said[c.VALID_RELEASE_IMAGE] = (False, c.VALIDATION_FAILED, problem)
        raise Waiting(problem, facts=Learned(said=said))
    said[c.VALID_RELEASE_IMAGE] = (True, c.AS_EXPECTED, f"Using release image: {image}")
    problem = validation.arch_problem(scope.spec, at(cluster, "status.payloadArch", ""))
    if problem:
        said[c.VALID_ARCH_PLATFORM] = (False, c.INVALID_ARCH_PLATFORM, problem)
        raise Waiting(problem, facts=Learned(said=said))
    said[c.VALID_ARCH_PLATFORM] = (True, c.AS_EXPECTED, "")
    return Learned(said=said, release=found)


def _skew(wanted: Version, cluster: Version) -> Verdict:
    problem = skew_problem(wanted, cluster)
    return (False, c.UNSUPPORTED_SKEW, problem) if problem else (True, c.AS_EXPECTED, "Release image version is valid")


async def _cluster_version(scope: Scope) -> Version:
    """The hosted cluster's finished version, or the one it is being made with."""
    cluster = scope.known_cluster()
    for entry in at(cluster, "status.version.history", []):
        if entry.get("completionTime") and entry.get("version"):
            return parse_version(entry["version"])
    return parse_version((await scope.tools.releases(cluster, at(cluster, "spec.release.image", ""))).version)
