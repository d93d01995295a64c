"""Waking a cluster that sleeps by the first request to its API. Pure.

The Route of the API says since when the cluster sleeps; hcp's router, where somebody connects to its host, writes the
same date beside it. A date, not a flag: what was asked in an earlier sleep, or before somebody asked for this one,
never counts, and nobody has to take anything away again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from hcp.api import conditions as c
from hcp.api import names, pause
from hcp.api.paths import annotations_of
from hcp.runtime import hibernation
from hcp.runtime.conditions import condition_of

Object = Mapping[str, Any]


def possible(annotations: Mapping[str, str], published: str) -> bool:
    """Whether its owner wants it, and its API is where a router can see who connects."""
    return hibernation.wakes_on_request(annotations) and published == "Route"


def problem(annotations: Mapping[str, str], published: str) -> str:
    """Why what its owner asks for has no effect."""
    value = annotations.get(names.ANNOTATION_WAKE_ON_REQUEST, "false")
    if value not in ("true", "false"):
        return f"annotation {names.ANNOTATION_WAKE_ON_REQUEST} is {value!r}; write true or false"
    if value == "true" and published != "Route":
        return (
            f"annotation {names.ANNOTATION_WAKE_ON_REQUEST}: the API is published by {published}, where nobody sees "
            "requests while it sleeps; it has to be by Route"
        )
    return ""


def mark(cluster: Object, route: Object | None) -> str:
    """Since when it sleeps, for the Route of its API; empty where no request shall wake it.

    While it wakes up the mark stays: those who connect before the API server is there wait for it too.
    """
    annotations = annotations_of(cluster)
    if not hibernation.wakes_on_request(annotations):
        return ""
    stage = hibernation.stage(cluster)
    if stage == c.WAKING_UP:
        return annotations_of(route).get(names.MARK_SLEEPS_SINCE, "")
    fell = hibernation.date_of(str((condition_of(cluster, c.HIBERNATING) or {}).get("lastTransitionTime") or ""))
    if stage != c.ASLEEP or fell is None:
        return ""
    # Who puts it to sleep once more, while it sleeps, means: also those who asked until now shall not wake it.
    return hibernation.stamp(max(fell, hibernation.asked_at(annotations) or fell))


def patch_for(cluster: Object, route: Object | None, now: dt.datetime) -> dict[str, Any] | None:
    """What ends the sleep, or forgets what ended an earlier one, in the HostedCluster's annotations.

    None where nobody asked, or nobody may. It names the version it is for: whoever puts the cluster to sleep at this
    moment, or takes the permission back, was not seen yet and must not be overruled.
    """
    meta, annotations = cluster["metadata"], annotations_of(cluster)
    if pause.parse(cluster["spec"].get("pausedUntil"), now).paused:
        return None
    woken = _woken(cluster, route, now)
    if not woken and not hibernation.outlived(annotations):
        return None
    values = {names.ANNOTATION_WOKEN: woken or None}
    return {"metadata": {"annotations": values, "resourceVersion": meta["resourceVersion"]}}


def _woken(cluster: Object, route: Object | None, now: dt.datetime) -> str:
    """When a request ended the sleep it is in; empty where none did."""
    since, told = mark(cluster, route), annotations_of(route)
    asked = told.get(names.MARK_SLEEPS_SINCE) == told.get(names.MARK_ASKED_FOR) == since
    if not since or not asked or hibernation.stage(cluster) != c.ASLEEP:
        return ""
    if not hibernation.wish(annotations_of(cluster), now).asleep:
        return ""
    return hibernation.stamp(max(now, hibernation.date_of(since) or now))
