"""operator-lifecycle-manager has ClusterOperators while it runs, and they say how its programs are."""

from __future__ import annotations

from dataclasses import replace

from tests.support.unit.hostedcluster import cluster
from tests.unit.hostedcluster.test_status import NOW, healthy, inside

from hcp.guest import olm
from hcp.guest.platform.operators import OPTIONAL, Operator
from hcp.guest.state import Part
from hcp.hostedcluster import cluster_operators, olm_status, status


def found(*parts: Part, nodes: int = 2) -> dict[str, Operator]:
    seen = healthy(guest=replace(inside(well=True, nodes=nodes), olm=parts))
    return {one.name: one for one in cluster_operators.found(cluster(), seen) if "lifecycle" in one.name}


def running(name: str) -> Part:
    return Part("Deployment", name, some=True, every=True, newest=True)


def test_there_is_one_for_each_program_and_none_without_a_catalog() -> None:
    assert found() == {}
    there = found(*(running(name) for name in olm.PROGRAMS))
    assert set(there) == set(olm_status.OPERATORS.values()) <= set(OPTIONAL)
    assert all(one.works and one.version and one.progressing[0] is False for one in there.values())


def test_a_program_that_does_not_run_is_told_and_keeps_the_version_partial() -> None:
    parts = (running("olm-operator"), running("catalog-operator"), Part("Deployment", olm.PACKAGES))
    there = found(*parts)
    late = there["operator-lifecycle-manager-packageserver"]
    assert late.available[:2] == (False, "WaitingForAvailable") and olm.PACKAGES in late.available[2]
    assert there["operator-lifecycle-manager"].works
    made = status.compute(cluster(), healthy(guest=replace(inside(well=True, nodes=2), olm=parts)), NOW)
    assert made["version"]["history"][0]["state"] == "Partial"


def test_without_a_ready_node_none_is_available() -> None:
    seen = healthy(guest=replace(inside(well=True, nodes=2), ready_nodes=0, olm=(running("olm-operator"),)))
    (one,) = olm_status.operators(seen, "")
    assert one.available[:2] == (False, "NoWorkerNodesAvailable")
