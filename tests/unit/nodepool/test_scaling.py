"""Pools that follow the load: bounds, who owns the size, what an absent node would be, and why a pool does not grow."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hcp.api import names
from hcp.kube.client import MANAGER
from hcp.nodepool import capacity, inherited, scaling
from hcp.nodepool.machines import PAUSED, DeploymentInput, machine_deployment
from hcp.nodepool.observed import Machines

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
BOUNDS: dict[str, Any] = {"autoScaling": {"min": 0, "max": 4}}
HAS = {names.AUTOSCALER: "r/cluster-autoscaler"}


def pool(**spec: Any) -> dict[str, Any]:
    kubevirt = {"rootVolume": {"persistent": {"size": "20Gi"}}, "compute": {"cores": 4, "memory": "8Gi"}}
    platform = {"type": "KubeVirt", "kubevirt": kubevirt}
    return {"metadata": {"name": "np", "namespace": "clusters"}, "spec": {"platform": platform, **spec}}


def deployment(*, exists: bool, paused: bool = False, **spec: Any) -> dict[str, Any]:
    return machine_deployment(
        DeploymentInput("clusters-demo", pool(**spec), "demo-x", "t", "u", "1.36.3", paused, exists=exists)
    )


def test_a_new_pool_has_its_smallest_size_and_from_then_on_the_size_is_not_ours() -> None:
    assert deployment(exists=False, **BOUNDS)["spec"]["replicas"] == 0
    assert "replicas" not in deployment(exists=True, **BOUNDS)["spec"]
    assert deployment(exists=True, replicas=3)["spec"]["replicas"] == 3


def test_a_pool_that_takes_machines_over_has_as_many_as_there_are() -> None:
    found = [{"spec": {"replicas": 2}}, {"spec": {"replicas": 1}}]
    assert inherited.size(found) == 3 and inherited.size([]) is None
    given = DeploymentInput("clusters-demo", pool(**BOUNDS), "demo-x", "t", "u", "1.36.3", False, size=3)
    assert machine_deployment(given)["spec"]["replicas"] == 3
    over = replace(given, size=9)
    assert machine_deployment(over)["spec"]["replicas"] == 4, "within the bounds"


def bounds(made: dict[str, Any]) -> tuple[str, str]:
    known = made["metadata"]["annotations"]
    return known[names.CAPI_SIZE_MIN], known[names.CAPI_SIZE_MAX]


def test_the_autoscaler_is_told_the_bounds_and_leaves_alone_what_has_a_size_or_rests() -> None:
    assert bounds(deployment(exists=True, **BOUNDS)) == ("0", "4")
    assert bounds(deployment(exists=True, replicas=3)) == ("0", "0")
    resting = deployment(exists=True, paused=True, **BOUNDS)
    assert bounds(resting) == ("0", "0") and resting["metadata"]["annotations"][PAUSED] == "true"
    fixed = deployment(exists=True, replicas=3)["metadata"]["annotations"]
    assert not [key for key in fixed if key.startswith(CAPACITY)], "nothing is told of a pool that nobody scales"


def told(machine: dict[str, Any] | None = None, **spec: Any) -> dict[str, str]:
    found = capacity.told("np", pool(**spec)["spec"], machine)
    return {key.removeprefix(f"{CAPACITY}/"): value for key, value in found.items()}


def test_a_node_that_is_not_there_is_described_with_labels_taints_and_a_little_less_than_its_machine_has() -> None:
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}, {"key": "slow", "effect": "NoExecute"}]
    found = told(nodeLabels={"tier": "batch"}, taints=taints)
    assert found["cpu"] == "4"
    assert 7 << 30 < int(found["memory"]) < (8 << 30) - (300 << 20)
    assert 14 << 30 < int(found["ephemeral-disk"]) < 16 << 30
    assert found["taints"] == "gpu=yes:NoSchedule,slow:NoExecute"
    labels = dict(one.split("=", 1) for one in found["labels"].split(","))
    assert (
        labels["tier"] == "batch" and labels[names.LABEL_NODEPOOL] == "np" and labels["kubernetes.io/arch"] == "amd64"
    )


def test_a_machine_that_somebody_changed_by_a_patch_is_what_counts() -> None:
    domain = {"cpu": {"cores": 2, "sockets": 2, "threads": 2}, "memory": {"guest": "4Gi"}}
    found = told({"spec": {"template": {"spec": {"domain": domain}}}})
    assert found["cpu"] == "8" and int(found["memory"]) < 4 << 30


def owned(manager: str, operation: str, fields: Any) -> dict[str, Any]:
    return {"metadata": {"managedFields": [{"manager": manager, "operation": operation, "fieldsV1": fields}]}}


@pytest.mark.parametrize("text", [False, True])
def test_who_applied_the_size_is_read_from_what_the_server_keeps(text: bool) -> None:
    mine: Any = {"f:spec": {"f:replicas": {}, "f:template": {}}}
    others: Any = {"f:spec": {"f:template": {}}}
    if text:
        mine, others = json.dumps(mine), json.dumps(others)
    assert scaling.owns_size(owned(MANAGER, "Apply", mine), MANAGER)
    assert not scaling.owns_size(owned(MANAGER, "Apply", others), MANAGER)
    assert not scaling.owns_size(owned("cluster-autoscaler", "Update", mine), MANAGER)
    assert not scaling.owns_size(None, MANAGER)


def test_whether_the_load_decides_depends_on_the_release_and_on_the_cluster() -> None:
    assert scaling.verdict({"replicas": 2}, {}, HAS) == (False, "AsExpected", "")
    assert scaling.verdict(BOUNDS, {}, HAS) == (True, "AsExpected", "Maximum nodes: 4, Minimum nodes: 0")
    enabled, reason, message = scaling.verdict(BOUNDS, {}, {})
    assert (enabled, reason) == (False, "FieldsNotHonoured") and "no cluster-autoscaler" in message
    own = {"metadata": {"annotations": {names.ANNOTATION_AUTOSCALER_IMAGE: "r/mine"}}}
    assert scaling.verdict(BOUNDS, own, {})[0] is True
    off = {"metadata": {"annotations": {names.ANNOTATION_DISABLE_AUTOSCALER: "true"}}}
    assert scaling.verdict(BOUNDS, off, HAS)[:2] == (False, "FieldsNotHonoured")


def machine(name: str, *, node: bool = False, going: bool = False, why: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} | ({"deletionTimestamp": "now"} if going else {})
    status: dict[str, Any] = {"nodeRef": {"name": name}} if node else {}
    if why:
        status["conditions"] = [{"type": "Ready", "status": "False", "reason": "VMNotReady", "message": why}]
    return {"metadata": metadata, "status": status}


def said(replicas: int, *machines: dict[str, Any], total: int = 0, most: int = 0) -> str:
    live = {"metadata": {"annotations": {names.CAPI_SIZE_MAX: "4"}}, "spec": {"replicas": replicas}}
    seen = Machines(machines=machines, deployment=live, in_cluster=total, most_in_cluster=most)
    return scaling.held_back(scaling.verdict(BOUNDS, {}, HAS), seen)[2]


def test_a_pool_that_can_grow_says_its_bounds_and_nothing_else() -> None:
    calm = "Maximum nodes: 4, Minimum nodes: 0"
    assert said(2, machine("a", node=True), machine("b", going=True), total=2, most=9) == calm


def test_a_pool_that_cannot_grow_says_why() -> None:
    assert "its maximum" in said(4)
    assert "maxNodesTotal is 5" in said(1, total=5, most=5)
    stuck = said(2, machine("a", node=True), machine("b", why="0/1 nodes are available: Insufficient memory"))
    assert "1 of 1 machines are not nodes yet" in stuck and "Insufficient memory" in stuck


def test_a_pool_that_does_not_follow_the_load_has_nothing_to_explain() -> None:
    seen = Machines(machines=[machine("b", why="x")], deployment={"spec": {"replicas": 1}})
    assert scaling.held_back((False, "AsExpected", ""), seen) == (False, "AsExpected", "")
