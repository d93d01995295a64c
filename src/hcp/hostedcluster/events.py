"""Events for what a person should know: turns of the conditions people look at."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hcp.api import conditions as c
from hcp.runtime import metrics
from hcp.runtime.conditions import get_condition, is_true
from hcp.runtime.events import EventRecorder

Object = dict[str, Any]
TIME_TO_AVAILABLE = metrics.Gauge(
    "hcp_time_to_available_seconds", "From creation to the first time Available, by cluster.", ["namespace", "name"]
)
_TOLD = (
    c.VALID_CONFIGURATION,
    c.SUPPORTED_HOSTED_CLUSTER,
    c.VALID_RELEASE_IMAGE,
    c.VALID_RELEASE_INFO,
    c.RECONCILIATION_SUCCEEDED,
)


def tell(recorder: EventRecorder, cluster: Object, before: Object, after: Object) -> None:
    old, new = before.get("conditions"), after.get("conditions")
    if is_true(new, c.AVAILABLE) and not is_true(old, c.AVAILABLE):
        _measure(cluster, before)
        recorder.event(cluster, "Normal", "Available", "The hosted control plane is available")
    for kind in _TOLD:
        have, had = get_condition(new, kind) or {}, get_condition(old, kind) or {}
        said = (had.get("status"), had.get("message"))
        if have.get("status") == "False" and said != ("False", have.get("message")):
            recorder.event(cluster, "Warning", str(have["reason"]), str(have.get("message")))
    stage = get_condition(new, c.HIBERNATING) or {}
    if stage.get("reason") != (get_condition(old, c.HIBERNATING) or {}).get("reason"):
        recorder.event(cluster, "Normal", str(stage["reason"]), str(stage.get("message")))
    lost = get_condition(new, c.AVAILABLE) or {}
    if is_true(old, c.AVAILABLE) and lost.get("status") != "True" and lost.get("reason") != c.HIBERNATING:
        recorder.event(cluster, "Warning", "Unavailable", str(lost.get("message")))


def _measure(cluster: Object, before: Object) -> None:
    """How long the first start took."""
    history = (before.get("controlPlaneVersion") or {}).get("history", [{}])
    if get_condition(before.get("conditions"), c.AVAILABLE) is not None and history[0].get("completionTime"):
        return
    meta = cluster["metadata"]
    created = dt.datetime.fromisoformat(str(meta["creationTimestamp"]))
    seconds = (dt.datetime.now(dt.UTC) - created).total_seconds()
    TIME_TO_AVAILABLE.set(round(seconds, 3), namespace=meta["namespace"], name=meta["name"])
