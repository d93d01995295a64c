"""The status of a HostedCluster as a pure function of what a pass has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hcp.api import conditions as c
from hcp.api.paths import at
from hcp.controlplane import encryption, storage_plan
from hcp.guest.platform.operators import Operator
from hcp.guest.state import NOT_LOOKED_AT
from hcp.hostedcluster import (
    cluster_operators,
    cluster_version,
    encryption_status,
    external_names,
    hibernation,
    login_status,
    outside_status,
    pod_trouble,
    restore_status,
    storage_move,
    storage_status,
    update_status,
    version,
)
from hcp.hostedcluster.observed import Observed
from hcp.runtime.conditions import get_condition, is_true, remove_condition, set_condition
from hcp.runtime.workloads import lacking, members, quorum, rolled_out, serving

_ENCRYPTION_STEPS = {
    encryption.READ: "The API servers are being given the new key for reading",
    encryption.WRITE: "The API servers are changing to the new key for writing",
    encryption.REWRITE: "Everything is being stored once more, under the new key",
}
# For whoever reads it when a majority is gone; docs/how-to/highly-available.md says more.
_WAY_BACK = (
    "Nothing can be written until most members are ready: bring back the nodes and volumes of those that are missing; "
    "if they are lost for good, restore the cluster from a backup with hcp restore"
)
Verdict = tuple[bool | str, str, str]


def compute(cluster: Mapping[str, Any], seen: Observed, now: str) -> dict[str, Any]:
    """The whole status; equal facts and an equal status before give an equal status."""
    before: Mapping[str, Any] = cluster.get("status") or {}
    generation = int(cluster["metadata"].get("generation") or 0)
    conditions = [dict(x) for x in before.get("conditions") or []]
    if seen.pause.paused:
        # Nothing was looked at beyond the pause itself: what is known of the rest stays as it was.
        resting = set_condition(conditions, c.RECONCILIATION_ACTIVE, *seen.pause.verdict(), generation, at=now)
        return {**before, "conditions": resting}
    ready_before = is_true(conditions, c.AVAILABLE)
    parts = _parts(cluster, seen)
    parts[c.AVAILABLE] = _available(seen, parts, ready_before=ready_before)
    stage = hibernation.following(seen.sleep, available=parts[c.AVAILABLE][0] is True)
    if seen.sleep.quiet:
        parts |= hibernation.said(seen.sleep, stage)
    status: dict[str, Any] = dict(before)
    operators = cluster_operators.found(cluster, seen)
    # What a phase that failed would have said is not known.
    reached = not cluster_operators.unwell(operators) and seen.ingress.problem == "" and not seen.errors
    status |= _versions(cluster, seen, before, parts, generation, now, reached=reached)
    blocked = _blocker(parts)
    parts |= cluster_version.verdicts(
        cluster,
        seen,
        status["version"],
        operators,
        available=parts[c.AVAILABLE][0] is True,
        blocked=blocked[2] if blocked else "",
    )
    parts[c.PROGRESSING] = _progressing(seen, parts, status, operators)
    if seen.guest is None and ready_before and (have := get_condition(conditions, c.PROGRESSING)):
        parts[c.PROGRESSING] = _read(have)
    if seen.sleep.quiet:
        parts = {kind: said for kind, said in parts.items() if not _stays(kind)}
    if stage:
        parts[c.HIBERNATING] = hibernation.verdict(seen.sleep, stage)
        if seen.sleep.stage not in ("", stage):
            # Each stage begins its own time.
            conditions = remove_condition(conditions, c.HIBERNATING)
    for kind, (value, reason, message) in parts.items():
        conditions = set_condition(conditions, kind, value, reason, message, generation, at=now)
    for kind in _absent(cluster, seen):
        conditions = remove_condition(conditions, kind)
    status["conditions"] = conditions
    if seen.encryption:
        name, fingerprint = seen.encryption_key
        status["secretEncryption"] = encryption_status.advance(
            before.get("secretEncryption"), secret=name, fingerprint=fingerprint, state=seen.encryption, now=now
        )
    if seen.api_endpoint:
        status["controlPlaneEndpoint"] = {"host": seen.api_endpoint.host, "port": seen.api_endpoint.port}
    if seen.kubeconfig:
        status["kubeconfig"] = {"name": seen.kubeconfig}
    if seen.custom_kubeconfig:
        status["customKubeconfig"] = {"name": seen.custom_kubeconfig}
    else:
        status.pop("customKubeconfig", None)
    if seen.ignition_endpoint:
        status["ignitionEndpoint"] = seen.ignition_endpoint
    if seen.release.arch:
        status["payloadArch"] = seen.release.arch
    return login_status.told(status, seen.login)


def _stays(kind: str) -> bool:
    """Whether nothing is known of it in a cluster that sleeps."""
    return kind in hibernation.KEPT or kind.startswith("ClusterVersion")


def _parts(cluster: Mapping[str, Any], seen: Observed) -> dict[str, Verdict]:
    release = seen.release
    parts: dict[str, Verdict] = {
        c.VALID_CONFIGURATION: _verdict(
            not seen.invalid,
            "Configuration passes validation",
            seen.config_reason or c.INVALID_CONFIGURATION,
            "; ".join(seen.invalid),
        ),
        c.VALID_HCP_CONFIGURATION: _verdict(
            not seen.invalid, "Configuration passes validation", c.INVALID_CONFIGURATION, "; ".join(seen.invalid)
        ),
        c.SUPPORTED_HOSTED_CLUSTER: _verdict(
            not seen.unsupported,
            "HostedCluster is supported by the operator",
            c.UNSUPPORTED_HOSTED_CLUSTER,
            "; ".join(seen.unsupported),
        ),
        c.VALID_RELEASE_IMAGE: _release_image(seen),
        c.VALID_RELEASE_INFO: _verdict(
            not release.missing,
            "The release has every image the control plane needs",
            c.MISSING_RELEASE_IMAGES,
            f"The release lacks: {', '.join(release.missing)}. Use a release that has them",
        ),
        c.INFRASTRUCTURE_READY: _verdict(
            not seen.waiting_for, "All is well", c.WAITING_ON_INFRASTRUCTURE, "; ".join(seen.waiting_for)
        ),
        c.ETCD_AVAILABLE: _etcd(cluster, seen),
        c.KUBE_APISERVER_AVAILABLE: _deployment(seen, "kube-apiserver", "Kube APIServer"),
        c.DEGRADED: _degraded(cluster, seen),
        c.RECONCILIATION_ACTIVE: seen.pause.verdict(),
        c.RECONCILIATION_SUCCEEDED: _succeeded(seen),
        c.FIELDS_HONOURED: _verdict(
            not seen.unacted,
            "; ".join(["Every field of the spec is acted on", *seen.partly_acted]),
            c.FIELDS_NOT_HONOURED,
            "; ".join([f"Accepted but without effect in this version: {', '.join(seen.unacted)}", *seen.partly_acted]),
        ),
        **_guest(cluster, seen),
        c.CONTROL_PLANE_SPREAD: _verdict(
            not seen.unspread, "Replicas can run on different nodes", "TooFewNodes", seen.unspread
        ),
    }
    parts |= _credentials(cluster, seen)
    parts |= restore_status.verdicts(cluster, seen)
    if (foreign := _foreign_etcd(cluster, seen)) is not None:
        parts[c.UNMANAGED_ETCD_AVAILABLE] = foreign
    if seen.encryption:
        parts[c.ETCD_ENCRYPTION_UP_TO_DATE] = _verdict(
            seen.encryption == encryption.DONE,
            "What etcd stores is encrypted with the active key",
            seen.encryption,
            _ENCRYPTION_STEPS.get(seen.encryption, ""),
        )
    if seen.stored is not None:
        parts[c.STORAGE_VERSIONS_UP_TO_DATE] = storage_move.verdict(seen.stored)
    known = get_condition(at(cluster, "status.conditions"), c.STORAGE_AVAILABLE)
    if (volumes := storage_status.verdict(seen.storage, _read(known) if known else NOT_LOOKED_AT)) is not None:
        parts[c.STORAGE_AVAILABLE] = volumes
    if seen.login is not None and login_status.wanted(seen.login):
        parts[c.VALID_IDP_CONFIGURATION] = login_status.verdict(seen.login)
    if seen.proxy is not None:
        parts[c.VALID_PROXY_CONFIGURATION] = outside_status.proxy(seen.proxy)
    if seen.external_names is not None:
        parts[c.EXTERNAL_DNS_REACHABLE] = outside_status.names(seen.external_names)
    if seen.updates is not None:
        parts[c.CLUSTER_VERSION_RETRIEVED_UPDATES] = seen.updates.verdict
    if seen.certificates is not None:
        parts[c.CERTIFICATES_UP_TO_DATE] = seen.certificates
    if seen.ignition_ready is not None:
        parts[c.IGNITION_ENDPOINT_AVAILABLE] = _verdict(
            seen.ignition_ready,
            "Ignition server deployment is available",
            c.WAITING_FOR_AVAILABLE,
            "Deployment ignition-server in the operator's namespace is not available",
        )
    if (cluster["spec"].get("platform") or {}).get("type") == "KubeVirt":
        parts[c.VALID_KUBEVIRT_MTU] = (
            True,
            c.AS_EXPECTED,
            "The guest's network takes its MTU from the machines, which take theirs from the infra cluster's network",
        )
        if seen.elsewhere:
            parts[c.KUBEVIRT_LIVE_MIGRATABLE] = _verdict(
                not seen.not_migratable,
                "All is well",
                c.NODES_NOT_LIVE_MIGRATABLE,
                f"Node pools with nodes that cannot move: {', '.join(seen.not_migratable)}",
            )
    return parts


def _credentials(cluster: Mapping[str, Any], seen: Observed) -> dict[str, Verdict]:
    """Whether what the platform needs to log in somewhere is there; on the management cluster itself it is nothing."""
    platform = cluster["spec"].get("platform") or {}
    external = bool(at(platform, "kubevirt.credentials"))
    if platform.get("type") != "KubeVirt" or (external and seen.credentials_problem is None):
        return {}
    found = "Required platform credentials are found" if external else "The platform needs no credentials"
    problem, reason = seen.credentials_problem or "", seen.credentials_reason or c.PLATFORM_CREDENTIALS_NOT_FOUND
    return {c.PLATFORM_CREDENTIALS_FOUND: _verdict(not problem, found, reason, problem)}


def _verdict(good: bool, message: str, reason: str, problem: str) -> Verdict:
    return (True, c.AS_EXPECTED, message) if good else (False, reason, problem)


def _release_image(seen: Observed) -> Verdict:
    if seen.release.problem:
        return False, seen.release.reason or c.INVALID_IMAGE, seen.release.problem
    if not seen.release.version:
        return "Unknown", c.STATUS_UNKNOWN, "The release image was not read yet"
    return True, c.AS_EXPECTED, "Release image is valid"


def _foreign_etcd(cluster: Mapping[str, Any], seen: Observed) -> Verdict | None:
    """Of an etcd that somebody else runs, only whether we can log in is ours to say."""
    unmanaged = (cluster["spec"].get("etcd") or {}).get("unmanaged")
    if not unmanaged:
        return None
    if seen.foreign_etcd:
        return False, c.UNMANAGED_ETCD_MISCONFIGURED, seen.foreign_etcd
    if seen.foreign_etcd is None:
        known = get_condition(at(cluster, "status.conditions"), c.UNMANAGED_ETCD_AVAILABLE)
        return _read(known) if known else ("Unknown", c.STATUS_UNKNOWN, "Its client certificate was not looked at yet")
    return True, c.AS_EXPECTED, f"etcd at {unmanaged['endpoint']} is run by its owner; the API server tells how it is"


def _etcd(cluster: Mapping[str, Any], seen: Observed) -> Verdict:
    if (foreign := _foreign_etcd(cluster, seen)) is not None:
        return foreign
    if seen.etcd is None:
        return False, c.STATEFULSET_NOT_FOUND, "StatefulSet etcd does not exist yet"
    ready, wanted = members(seen.etcd)
    if quorum(seen.etcd, seen.etcd_voters):
        also = f"; {seen.etcd_change}" if seen.etcd_change else ""
        return _room(cluster, seen) or (True, c.QUORUM_AVAILABLE, f"{ready} of {wanted} members are ready{also}")
    known = "; ".join(filter(None, (seen.etcd_problem, seen.etcd_change)))
    why = f": {known}" if known else _why(seen, "etcd")
    back = "" if known or wanted == 1 or not _ran(cluster) else f". {_WAY_BACK}"
    said = f"Waiting for etcd to reach quorum, {ready} of {wanted} are ready{why}{back}"
    return False, c.ETCD_WAITING_FOR_QUORUM, said


def _ran(cluster: Mapping[str, Any]) -> bool:
    """Whether the control plane was ever complete: before that, members that are missing have yet to come."""
    return bool(version.completed_version(at(cluster, "status.controlPlaneVersion")))


def _room(cluster: Mapping[str, Any], seen: Observed) -> Verdict | None:
    """A full etcd answers, but nothing can be changed; what is known stays until somebody has looked again."""
    if seen.etcd_full:
        return False, c.ETCD_NO_SPACE, seen.etcd_full
    before = get_condition(at(cluster, "status.conditions"), c.ETCD_AVAILABLE)
    if seen.etcd_full is None and before is not None and before.get("reason") == c.ETCD_NO_SPACE:
        return _read(before)
    return None


def _deployment(seen: Observed, name: str, title: str) -> Verdict:
    deployment = seen.deployments.get(name)
    if deployment is None:
        return False, c.NOT_FOUND, f"{title} deployment does not exist yet"
    if serving(deployment):
        return True, c.AS_EXPECTED, f"{title} is available"
    said = f"Waiting for the {title} deployment to become available{_why(seen, name)}"
    return False, c.WAITING_FOR_AVAILABLE, said


def _why(seen: Observed, name: str) -> str:
    """What keeps the pods of a part, as far as it is known."""
    found = seen.troubles.get(name) or pod_trouble.no_pods(seen.deployments.get(name))
    return f": {found}" if found else ""


def _degraded(cluster: Mapping[str, Any], seen: Observed) -> Verdict:
    short = []
    if missing := lacking(seen.etcd):
        short.append(f"etcd misses {missing} of {members(seen.etcd)[1]} members{_why(seen, 'etcd')}")
    for name in sorted(seen.deployments):
        status = seen.deployments[name].get("status") or {}
        if missing := int(status.get("unavailableReplicas") or 0):
            short.append(f"{name} misses {missing} replicas{_why(seen, name)}")
    if short and not _ran(cluster) and not seen.troubles and not serving(seen.deployments.get("kube-apiserver")):
        # All are missing, and come one after the other: each would be a write, and say nothing.
        return True, c.UNAVAILABLE_REPLICAS, "The control plane starts for the first time"
    if short:
        return True, c.UNAVAILABLE_REPLICAS, "; ".join(short)
    return False, c.AS_EXPECTED, "The hosted control plane is not degraded"


def _succeeded(seen: Observed) -> Verdict:
    if seen.errors:
        return False, c.RECONCILIATION_ERROR, "; ".join(f"{k}: {v}" for k, v in sorted(seen.errors.items()))
    return True, c.RECONCILIATION_SUCCEEDED_REASON, "Reconciliation completed successfully"


def _guest(cluster: Mapping[str, Any], seen: Observed) -> dict[str, Verdict]:
    """The inside of the hosted cluster; while it was not looked at, what is known stays."""
    kinds = (c.DATA_PLANE_CONNECTION, c.CONTROL_PLANE_CONNECTION, c.CONFIG_OPERATOR_SUCCEEDED)
    guest = seen.guest
    if guest is None:
        known = at(cluster, "status.conditions")
        kept = {kind: get_condition(known, kind) for kind in kinds}
        return {kind: _read(have) if have else NOT_LOOKED_AT for kind, have in kept.items()}
    network = "the release's own CNI (flannel)" if seen.own_network else "none from this operator, as networkType asks"
    applied: Verdict = (
        True,
        c.RECONCILIATION_SUCCEEDED_REASON,
        f"Everything inside the guest is applied; network: {network}",
    )
    if guest.problem:
        applied = (False, c.RECONCILIATION_ERROR, guest.problem)
    elif not guest.reachable:
        applied = NOT_LOOKED_AT
    return dict(zip(kinds, (guest.data_plane, guest.control_plane, applied), strict=True))


def _read(condition: Mapping[str, Any]) -> Verdict:
    return str(condition["status"]), str(condition["reason"]), str(condition.get("message") or "")


def _available(seen: Observed, parts: Mapping[str, Verdict], *, ready_before: bool) -> Verdict:
    if seen.ahead:  # no number in the message: it would be a write for every step of the line
        return False, c.WAITING_FOR_TURN, "Waiting for its turn: as many clusters as the nodes take are starting"
    if missing := _missing_pieces(parts):
        return _blocker(parts) or (False, missing[0][1], "; ".join(message for _, _, message in missing))
    if not seen.kubeconfig:
        return False, "KubeconfigWaitingForCreate", "Waiting for the kubeconfig of the hosted cluster"
    if seen.api_health is None and not ready_before:
        return _before_the_first_answer(seen)
    if seen.api_health:
        return False, "KASLoadBalancerNotReachable", seen.api_health
    if not ready_before:
        waiting = [n for n in seen.wanted_deployments if not serving(seen.deployments.get(n))]
        if waiting:
            said = ", ".join(f"{name}{_why(seen, name)}" for name in waiting)
            return False, c.WAITING_FOR_AVAILABLE, f"Waiting for: {said}"
    return True, c.AS_EXPECTED, "The hosted control plane is available"


def _missing_pieces(parts: Mapping[str, Verdict]) -> list[Verdict]:
    """What is waited for: causes, not what follows from them.

    kube-apiserver is made when its address is known and gets ready when etcd is, so it is named only when neither of
    them is missing.
    """
    causes = [parts[kind] for kind in (c.ETCD_AVAILABLE, c.INFRASTRUCTURE_READY) if parts[kind][0] is not True]
    return causes or [parts[kind] for kind in (c.KUBE_APISERVER_AVAILABLE,) if parts[kind][0] is not True]


def _before_the_first_answer(seen: Observed) -> Verdict:
    """All pods are ready and the published address has yet to answer once; an error may be why nobody asks it."""
    if seen.errors:
        return False, c.RECONCILIATION_ERROR, _succeeded(seen)[2]
    where = f" at {seen.api_endpoint.url}" if seen.api_endpoint else ""
    message = f"etcd and kube-apiserver are ready; waiting for the first answer of the hosted API{where}"
    return False, c.WAITING_FOR_AVAILABLE, message


def _blocker(parts: Mapping[str, Verdict]) -> Verdict | None:
    """What keeps anything from being made at all, said where people look first."""
    for kind in (c.SUPPORTED_HOSTED_CLUSTER, c.VALID_CONFIGURATION, c.VALID_RELEASE_IMAGE, c.VALID_RELEASE_INFO):
        value, reason, message = parts.get(kind, (True, "", ""))
        if value is False:
            return False, reason, message
    return None


def _versions(
    cluster: Mapping[str, Any],
    seen: Observed,
    before: Mapping[str, Any],
    parts: Mapping[str, Verdict],
    generation: int,
    now: str,
    *,
    reached: bool,
) -> dict[str, Any]:
    """`reached`: every part is available."""
    image = cluster["spec"]["release"]["image"]
    control_image = (cluster["spec"].get("controlPlaneRelease") or {}).get("image") or image
    ready = seen.release.usable and parts[c.AVAILABLE][0] is True
    newest = not seen.members_first and all(rolled_out(seen.deployments.get(n)) for n in seen.wanted_deployments)
    at_version = ready and newest
    guest_ready = _guest_ready(seen) and reached
    common: dict[str, Any] = {"generation": generation, "now": now}
    known = seen.release.version
    whole = version.advance(
        before.get("version"), image=image, version=known, complete=at_version and guest_ready, **common
    )
    following = bool(cluster["spec"].get("channel"))
    return {
        "version": update_status.told(whole, seen.updates, before.get("version"), now, following=following),
        "controlPlaneVersion": version.advance(
            before.get("controlPlaneVersion"), image=control_image, version=known, complete=at_version, **common
        ),
    }


def _guest_ready(seen: Observed) -> bool:
    guest = seen.guest
    if guest is None or not guest.reachable or guest.problem or guest.waiting:
        return False
    return guest.version == seen.release.version and all(part.newest for part in guest.parts)


def _progressing(
    seen: Observed, parts: Mapping[str, Verdict], status: Mapping[str, Any], operators: Sequence[Operator]
) -> Verdict:
    if (blocked := _blocker(parts)) is not None:
        return False, c.BLOCKED, blocked[2]
    if seen.errors:
        return False, c.RECONCILIATION_ERROR, _succeeded(seen)[2]
    history = at(status, "version.history") or [{}]
    if history[0].get("state") == version.COMPLETED:
        return False, c.AS_EXPECTED, "HostedCluster is at expected version"
    if parts[c.AVAILABLE][0] is not True:
        return True, "Progressing", f"The control plane is being rolled out: {parts[c.AVAILABLE][2]}"
    stuck = [f"{name}{why}" for name in sorted(seen.deployments) if (why := _why(seen, name))]
    if seen.members_first:
        stuck.insert(0, seen.members_first)
    if stuck:
        return True, "Progressing", f"The control plane is being rolled out: {'; '.join(stuck)}"
    if seen.guest is None:
        return True, "Progressing", "The inside of the cluster was not looked at yet"
    if not seen.guest.nodes:
        return True, "Progressing", "The control plane is at the version; the cluster has no nodes yet to run the rest"
    waiting = ", ".join(seen.guest.waiting or cluster_operators.unwell(operators)) or _outside(seen)
    return True, "Progressing", f"Waiting for: {waiting}"


def _outside(seen: Observed) -> str:
    if seen.ingress.problem is None:
        return "a first answer of the default ingress from outside"
    if seen.ingress.problem:
        return f"the default ingress, {seen.ingress.problem}: {seen.ingress.todo}"
    return "replicas of the control plane"


def _absent(cluster: Mapping[str, Any], seen: Observed) -> list[str]:
    """Conditions that exist only while they mean something."""
    absent = []
    if cluster["spec"].get("controllerAvailabilityPolicy") != "HighlyAvailable":
        absent.append(c.CONTROL_PLANE_SPREAD)
    if not _credentials(cluster, seen):
        absent.append(c.PLATFORM_CREDENTIALS_FOUND)
    if not storage_plan.wanted(cluster["spec"]) or (seen.release.usable and not seen.errors and seen.storage is None):
        absent.append(c.STORAGE_AVAILABLE)
    if seen.login is not None and not login_status.wanted(seen.login):
        absent.append(c.VALID_IDP_CONFIGURATION)
    if seen.proxy is None:
        absent.append(c.VALID_PROXY_CONFIGURATION)
    if not external_names.given(cluster["spec"]):
        absent.append(c.EXTERNAL_DNS_REACHABLE)
    if not cluster["spec"].get("channel"):
        absent.append(c.CLUSTER_VERSION_RETRIEVED_UPDATES)
    if not seen.elsewhere:
        absent.append(c.KUBEVIRT_LIVE_MIGRATABLE)
    return absent
