"""The first phases: what the pool's own fields say, its release, the endpoint, and whether it is paused."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api import conditions as c
from hcp.api.names import ANNOTATION_SKIP_RELEASE_VALIDATION, FINALIZER
from hcp.api.pause import parse
from hcp.api.versions import Version, parse_version, release_problem, skew_problem
from hcp.errors import HcpError
from hcp.kube.resources import NODEPOOLS
from hcp.nodepool import unacted, validation
from hcp.nodepool.scope import LOOK_AGAIN, Scope
from hcp.runtime import Result, Waiting


async def adopt(scope: Scope) -> Result | None:
    """The finalizer, and the hosted cluster as owner."""
    metadata = scope.pool["metadata"]
    patch: dict[str, Any] = {}
    if FINALIZER not in (metadata.get("finalizers") or []):
        patch["finalizers"] = [*(metadata.get("finalizers") or []), FINALIZER]
    owner = scope.cluster["metadata"]
    owners = metadata.get("ownerReferences") or []
    if not any(entry.get("uid") == owner["uid"] for entry in owners):
        mine = {
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "HostedCluster",
            "name": owner["name"],
            "uid": owner["uid"],
        }
        patch["ownerReferences"] = [*(o for o in owners if o.get("kind") != "HostedCluster"), mine]
    if patch:
        patch["resourceVersion"] = metadata["resourceVersion"]
        made = await scope.ctx.client.patch(NODEPOOLS, scope.name, scope.namespace, {"metadata": patch})
        scope.pool["metadata"] = made["metadata"]
        scope.tools.watches.pools.observe(made)
    return None


async def hosted_namespace(scope: Scope) -> Result | None:
    """Nothing is read or made in a namespace that is not, or not yet, the hosted cluster's."""
    if not scope.tools.watches.has_namespace(scope.cluster, scope.hosted):
        raise Waiting(f"the hosted cluster has no namespace {scope.hosted} of its own yet")
    return None


async def own_fields(scope: Scope) -> Result | None:
    """Autoscaling, autorepair and update settings, checked; what has no effect is named."""
    spec = scope.spec
    scope.set(c.FIELDS_HONOURED, *unacted.fields(spec))
    problem = validation.scaling_problem(spec)
    if problem:
        raise scope.refuse(c.AUTOSCALING_ENABLED, c.VALIDATION_FAILED, problem)
    scope.set(c.AUTOSCALING_ENABLED, *unacted.autoscaling(spec))
    scope.set(c.AUTOREPAIR_ENABLED, bool((spec.get("management") or {}).get("autoRepair")), c.AS_EXPECTED)
    problem = validation.management_problem(spec)
    if problem:
        raise scope.refuse(c.UPDATE_MANAGEMENT_ENABLED, c.VALIDATION_FAILED, problem)
    scope.set(c.UPDATE_MANAGEMENT_ENABLED, True, c.AS_EXPECTED)
    return None


async def release(scope: Scope) -> Result | None:
    """Read the release and hold it against the pool's and the cluster's versions."""
    image = (scope.spec.get("release") or {}).get("image") or (scope.cluster_spec.get("release") or {}).get("image", "")
    try:
        found = await scope.tools.releases(scope.cluster, image)
        wanted, current = parse_version(found.version), _version(scope.status.get("version"))
        cluster = await _cluster_version(scope)
    except HcpError as error:
        scope.set(c.VALID_RELEASE_IMAGE, False, c.VALIDATION_FAILED, f"Failed to get release image: {error}")
        raise
    problem = release_problem(wanted, current, cluster)
    if problem and ANNOTATION_SKIP_RELEASE_VALIDATION not in scope.pool_annotations:
        scope.set(c.SUPPORTED_VERSION_SKEW, skew_problem(wanted, cluster) is None, *_skew(wanted, cluster))
        raise scope.refuse(c.VALID_RELEASE_IMAGE, c.VALIDATION_FAILED, problem)
    scope.set(c.VALID_RELEASE_IMAGE, True, c.AS_EXPECTED, f"Using release image: {image}")
    scope.set(c.SUPPORTED_VERSION_SKEW, skew_problem(wanted, cluster) is None, *_skew(wanted, cluster))
    arch = validation.arch_problem(scope.spec, (scope.cluster.get("status") or {}).get("payloadArch", ""))
    if arch:
        raise scope.refuse(c.VALID_ARCH_PLATFORM, c.INVALID_ARCH_PLATFORM, arch)
    scope.set(c.VALID_ARCH_PLATFORM, True, c.AS_EXPECTED)
    scope.release = found
    return None


def _skew(wanted: Version, cluster: Version) -> tuple[str, str]:
    problem = skew_problem(wanted, cluster)
    return (c.UNSUPPORTED_SKEW, problem) if problem else (c.AS_EXPECTED, "Release image version is valid")


def _version(text: Any) -> Version | None:
    return parse_version(text) if text else None


async def _cluster_version(scope: Scope) -> Version:
    """The hosted cluster's finished version, or the one it is being made with."""
    history = ((scope.cluster.get("status") or {}).get("version") or {}).get("history") or []
    for entry in history:
        if entry.get("completionTime") and entry.get("version"):
            return parse_version(entry["version"])
    image = (scope.cluster_spec.get("release") or {}).get("image", "")
    return parse_version((await scope.tools.releases(scope.cluster, image)).version)


async def endpoint(scope: Scope) -> Result | None:
    """The bootstrap server's address and authority must be known before machines can be told of them."""
    if not (scope.cluster.get("status") or {}).get("ignitionEndpoint"):
        raise scope.refuse(
            c.IGNITION_ENDPOINT_AVAILABLE, c.IGNITION_ENDPOINT_MISSING, "Ignition endpoint not available, waiting"
        )
    if await scope.tools.watches.authority() is None:
        scope.set(c.IGNITION_ENDPOINT_AVAILABLE, False, c.IGNITION_CA_MISSING, "still waiting for the ignition CA")
        raise HcpError("the bootstrap server's certificate authority does not exist yet")
    scope.drop(c.IGNITION_ENDPOINT_AVAILABLE)
    if not scope.infra_id:
        raise Waiting("the hosted cluster has no infraID yet", again=LOOK_AGAIN)
    return None


async def pause(scope: Scope) -> Result | None:
    """Whether somebody asked us to leave the pool alone, and until when."""
    now = dt.datetime.now(dt.UTC)
    rest = parse(scope.spec.get("pausedUntil"), now)
    scope.paused = rest.paused
    scope.set(c.RECONCILIATION_ACTIVE, *rest.verdict())
    seconds = rest.seconds(now)
    return Result(seconds) if seconds else None
