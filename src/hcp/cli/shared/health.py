"""Reading the status of hosted clusters and node pools. Pure: objects in, words out."""

from __future__ import annotations

from typing import Any

from hcp.api import conditions as c

Object = dict[str, Any]

# Conditions that are fine when False; every other one is fine when True.
FINE_WHEN_FALSE = frozenset(
    (
        c.PROGRESSING,
        c.DEGRADED,
        c.CLUSTER_VERSION_FAILING,
        c.CLUSTER_VERSION_PROGRESSING,
        c.ETCD_RECOVERY_ACTIVE,
        c.CVO_SCALED_DOWN,
        c.UPDATING_VERSION,
        c.UPDATING_CONFIG,
        c.UPDATING_MACHINE_TEMPLATE,
        c.CIDR_CONFLICT,
        c.NODES_UNDER_EVACUATION,
        c.NODES_UNDER_REPAIR,
    )
)
# Conditions that mirror what the user chose: fine either way. That a choice has no effect, AllFieldsHonoured says.
CHOICES = frozenset((c.AUTOSCALING_ENABLED, c.AUTOREPAIR_ENABLED))
CHOICE_REASONS = ("", c.AS_EXPECTED, c.FIELDS_NOT_HONOURED)
# Conditions that are about deletion, or only inform.
NEUTRAL = frozenset(
    (
        c.CLOUD_RESOURCES_DESTROYED,
        c.HOSTED_CLUSTER_DESTROYED,
        c.CLUSTER_VERSION_AVAILABLE,
        c.CLUSTER_VERSION_UPGRADEABLE,
        c.CLUSTER_VERSION_RETRIEVED_UPDATES,
        c.RESTORED_FROM_BACKUP,
        c.HIBERNATING,
    )
)
# The pieces of a control plane in the order they come up, with the words shown for them.
PIECES = (
    (c.VALID_RELEASE_IMAGE, "release"),
    (c.ETCD_AVAILABLE, "etcd"),
    (c.INFRASTRUCTURE_READY, "addresses"),
    (c.KUBE_APISERVER_AVAILABLE, "API server"),
    (c.AVAILABLE, "control plane"),
)


def condition(obj: Object, kind: str) -> Object | None:
    found: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return next((item for item in found if item.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def problems(obj: Object) -> list[Object]:
    """Conditions that are not as they should be, in the order the object has them."""
    bad = []
    empty = (obj.get("spec") or {}).get("replicas") == 0
    for item in (obj.get("status") or {}).get("conditions") or []:
        kind, reason = item.get("type"), item.get("reason")
        # A cluster without nodes cannot reach them, a pool of none has no machines, and who sleeps does not answer: all
        # as asked for.
        if kind in NEUTRAL or reason in (c.NO_WORKER_NODES, c.HIBERNATING) or (empty and reason == c.NOT_FOUND):
            continue
        if kind in CHOICES and str(reason or "") in CHOICE_REASONS:
            continue
        if item.get("status") != ("False" if kind in FINE_WHEN_FALSE else "True"):
            bad.append(item)
    return bad


def hindrances(obj: Object) -> list[Object]:
    """Problems that can be why something is not ready; a field without effect never is."""
    return [item for item in problems(obj) if item.get("reason") != c.FIELDS_NOT_HONOURED]


def explain(item: Object) -> str:
    """`Reason: message` of a condition, as far as it has them; the reason of things that are well says nothing."""
    reason, message = str(item.get("reason") or ""), str(item.get("message") or "").strip()
    if reason == c.AS_EXPECTED and message:
        return message
    return f"{reason}: {message}" if reason and message else reason or message or "no reason given"


def version(obj: Object) -> str:
    """The version a hosted cluster has fully reached, or nothing."""
    for entry in history(obj):
        if entry.get("state") == "Completed":
            return str(entry.get("version") or "")
    return ""


def history(obj: Object) -> list[Object]:
    return ((obj.get("status") or {}).get("version") or {}).get("history") or []


def control_plane_image(obj: Object) -> str:
    """The release the control plane has fully reached last, whatever its nodes run."""
    entries: list[Object] = ((obj.get("status") or {}).get("controlPlaneVersion") or {}).get("history") or history(obj)
    return str(entries[0].get("image") or "") if entries and entries[0].get("completionTime") else ""


def at_its_version(obj: Object) -> bool:
    entries = history(obj)
    return bool(entries and entries[0].get("completionTime"))


def nodes(pool: Object) -> tuple[int, int | None]:
    """(nodes there are, nodes wanted); None wanted when only bounds are given."""
    wanted = (pool.get("spec") or {}).get("replicas")
    return int((pool.get("status") or {}).get("replicas") or 0), None if wanted is None else int(wanted)


def desired(pool: Object) -> str:
    """How many nodes are wanted, in words: a number, or the bounds of autoScaling."""
    spec = pool.get("spec") or {}
    scaling = spec.get("autoScaling")
    return f"{scaling.get('min')}-{scaling.get('max')}" if scaling else str(spec.get("replicas") or 0)


def pool_ready(pool: Object) -> bool:
    have, wanted = nodes(pool)
    if wanted is None:
        wanted = int(((pool.get("spec") or {}).get("autoScaling") or {}).get("min") or 0)
    return have >= wanted and not any(is_true(pool, kind) for kind in (c.UPDATING_VERSION, c.UPDATING_CONFIG))


def control_plane_line(cluster: Object) -> str:
    """Which pieces are up, and why the first missing one is not."""
    up = [word for kind, word in PIECES if is_true(cluster, kind)]
    missing = next(((kind, word) for kind, word in PIECES if not is_true(cluster, kind)), None)
    ready = f"{', '.join(up)} ready" if up else "nothing ready yet"
    if missing is None:
        if at_its_version(cluster):
            return "control plane available"
        found_bad = hindrances(cluster)
        general = (c.PROGRESSING, c.CLUSTER_VERSION_PROGRESSING)
        bad = [item for item in found_bad if item.get("type") not in general] or found_bad
        return "control plane available, rollout not completed" + (f" ({explain(bad[0])})" if bad else "")
    found = condition(cluster, missing[0])
    why = explain(found) if found else "not reported yet"
    return f"{ready}; {missing[1]} waits ({why})"


def sleep_stage(cluster: Object) -> str:
    """How far a cluster is between awake and asleep; empty for one that never slept."""
    return str((condition(cluster, c.HIBERNATING) or {}).get("reason") or "")


def sleep_line(cluster: Object) -> str:
    """The same in words; empty for a cluster that is simply awake."""
    found = condition(cluster, c.HIBERNATING) or {}
    message = str(found.get("message") or "")
    return "" if found.get("reason") == c.AWAKE and "falls asleep" not in message else message


def cluster_trouble(cluster: Object) -> str:
    """What is wrong with a cluster that waiting does not heal, and what to do; empty when it only needs time."""
    for item in hindrances(cluster):
        kind, reason = str(item.get("type")), str(item.get("reason") or "")
        wrong = kind.startswith(("Valid", "Supported")) or kind == c.PLATFORM_CREDENTIALS_FOUND
        if wrong and item.get("status") == "False" and not reason.startswith("Waiting"):
            name = cluster["metadata"]["name"]
            return f"hosted cluster {name}: {explain(item)}; correct its spec, it goes on by itself"
    return ""
