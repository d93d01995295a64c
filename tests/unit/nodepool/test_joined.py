"""What a pool of platform None says of the nodes that joined, and of what it is asked in vain."""

from __future__ import annotations

from typing import Any

import pytest

from hcp.api.names import LABEL_NODEPOOL
from hcp.nodepool import ignored_fields
from hcp.nodepool.joined import joining_labels, judge
from hcp.nodepool.status import node_versions
from hcp.nodepool.validation import arch_problem, foreign_platform, unmanaged_problem


def node(name: str, ready: str | None = "True", pool: str = "np", version: str = "1.36.3") -> dict[str, Any]:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "reason": "Kubelet", "message": "m"}]
    return {
        "metadata": {"name": name, "labels": joining_labels(pool, version)},
        "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": f"v{version}"}},
    }


def test_an_empty_pool_is_ready_for_machines() -> None:
    found = judge("np", 0, [node("other", pool="second")])
    assert found.ready == 0 and found.pool_ready[0] is True
    assert found.healthy[:2] == (False, "NotFound")


def test_a_pool_waits_for_as_many_as_its_owner_expects() -> None:
    found = judge("np", 2, [node("a")])
    assert found.pool_ready[:2] == (False, "WaitingForNodes")
    assert "1 of 2" in found.pool_ready[2]
    assert judge("np", 2, [node("a"), node("b")]).pool_ready[0] is True
    assert judge("np", 1, [node("a"), node("b")]).pool_ready[0] is True


@pytest.mark.parametrize("ready", ["False", "Unknown", None])
def test_a_sick_node_is_named(ready: str | None) -> None:
    found = judge("np", 1, [node("a"), node("b", ready)])
    assert found.ready == 1
    assert found.pool_ready[:2] == (False, "NodesNotReady")
    assert "Machine b: " in found.healthy[2]


def test_versions_are_counted_by_release() -> None:
    nodes = [node("a"), node("b", "False"), node("c", version="1.36.4")]
    [old, new] = node_versions(nodes, healthy="Ready")
    assert (old["ocpVersion"], old["readyNodeCount"], old["unreadyNodeCount"]) == ("1.36.3", 1, 1)
    assert (new["ocpVersion"], new["kubeletVersion"], new["readyNodeCount"]) == ("1.36.4", "1.36.4", 1)


def test_a_version_that_is_no_label_does_not_stop_a_kubelet() -> None:
    assert joining_labels("np", "1.36.3+k3s") == {
        LABEL_NODEPOOL: "np",
        "hypershift.openshift.io/release-version": "1.36.3-k3s",
    }
    assert joining_labels("np", "odd version") == {LABEL_NODEPOOL: "np"}


def test_what_is_asked_in_vain_is_named() -> None:
    plain = {"replicas": 2, "nodeDrainTimeout": "0s", "management": {"upgradeType": "InPlace", "autoRepair": False}}
    assert ignored_fields.unmanaged(plain)[0] is True
    told = ignored_fields.unmanaged(
        {"autoScaling": {"min": 1, "max": 2}, "management": {"autoRepair": True}, "osImageStream": 1}
    )
    assert told[0] is False
    assert all(name in told[2] for name in ("autoScaling", "autoRepair", "osImageStream"))
    good, _, message = ignored_fields.update_management(plain)
    assert good and "InPlace" in message
    assert "Replace" in ignored_fields.update_management({})[2]


def test_pools_are_of_their_clusters_platform() -> None:
    mine, theirs = {"platform": {"type": "None"}}, {"platform": {"type": "KubeVirt"}}
    assert foreign_platform(mine, mine) is None
    assert "platform KubeVirt" in (foreign_platform(mine, theirs) or "")
    assert "platform None" in (foreign_platform(theirs, mine) or "")


def test_what_cannot_be_a_pool_of_own_machines() -> None:
    assert unmanaged_problem("n" * 63, {}) is None
    assert "64" not in (unmanaged_problem("n" * 64, {}) or "64")
    arm = {"arch": "arm64", "platform": {"type": "None"}}
    assert arch_problem(arm, "Multi") is None
    assert arch_problem({**arm, "arch": "s390x"}, "Multi")


def test_what_a_node_says_is_quoted_within_bounds() -> None:
    odd = node("b", "False")
    odd["status"]["conditions"][0] |= {"reason": "9 bad\nwords !" * 50, "message": "x\0\n" * 5000}
    good, reason, message = judge("np", 1, [odd]).healthy
    assert not good and reason.isalnum() and len(reason) <= 64
    assert len(message) < 1000 and "\0" not in message
    many = [node(f"n{number}", version=f"1.{number}.0") for number in range(300)]
    assert len(node_versions(many, healthy="Ready")) == 100
