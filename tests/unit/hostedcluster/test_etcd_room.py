"""A full etcd in the conditions, and the date of defragmentation."""

from __future__ import annotations

import datetime as dt
from typing import Any

from tests.support.unit.hostedcluster import cluster

from hcp.api import names
from hcp.hostedcluster import status, translate
from hcp.hostedcluster.etcd_maintenance import plan_of
from hcp.hostedcluster.observed import Observed
from hcp.runtime.conditions import get_condition

READY: dict[str, Any] = {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def etcd(hosted: dict[str, Any], seen: Observed) -> Any:
    """The condition, which also becomes what is known before the next look."""
    hosted["status"] = status.compute(hosted, seen, "2026-01-01T00:00:00Z")
    return get_condition(hosted["status"]["conditions"], "EtcdAvailable")


def test_a_full_etcd_is_not_available_and_says_why_until_somebody_looked_again() -> None:
    hosted = cluster()
    full = etcd(hosted, Observed(etcd=READY, etcd_full="etcd is full"))
    assert (full["status"], full["reason"], full["message"]) == ("False", "EtcdNoSpace", "etcd is full")
    assert etcd(hosted, Observed(etcd=READY))["reason"] == "EtcdNoSpace"
    assert etcd(hosted, Observed(etcd=READY, etcd_full=""))["reason"] == "QuorumAvailable"


def test_clusters_are_defragmented_at_night_at_different_minutes_or_as_asked() -> None:
    def plan(name: str, text: str = "") -> tuple[Any, str]:
        hosted = cluster()
        hosted["metadata"] |= {"name": name, "annotations": {names.ANNOTATION_ETCD_DEFRAG_SCHEDULE: text}}
        return plan_of(translate.params(hosted))

    dates = {plan(f"c{n}")[0].after(NOW) for n in range(20)}
    assert len(dates) > 10
    assert {date.hour for date in dates} <= {2, 3, 4}
    assert plan("one", "30 14 * * *")[0].after(NOW).hour == 14
    assert plan("one", "Never") == (None, "")
    wrong, problem = plan("one", "at night")
    assert wrong == plan("one")[0]
    assert "etcd-defrag-schedule" in problem
